import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import type { BundledPlayer, Picture, RunSummary } from "../api";
import { SmallBoard } from "../board";
import { ago, gameTitle, percent } from "../format";
import { useAsked } from "../hooks";
import { Link } from "../link";
import { Trouble } from "../parts";

const LOOK_MS = 10000;

export function PlayersPage() {
  const { data: runs, error } = useAsked<RunSummary[]>("/api/runs", LOOK_MS);
  useEffect(() => {
    document.title = "Play - tengen";
  }, []);
  const trained = (runs ?? []).filter((run) => !run.error && !run.in_environments && run.latest_model !== null);
  return (
    <section>
      <header class="page-header">
        <h1>Play</h1>
      </header>
      <Players title="Players that come with tengen" />
      <section class="players" aria-label="Your runs">
        <h2>Your runs</h2>
        {error && <Trouble>{error}</Trouble>}
        {runs && trained.length === 0 && (
          <p class="soft">
            No run of a game has a model yet. <code>tengen train gomoku/9 --minutes 10</code> makes one.
          </p>
        )}
        <ul class="cards">
          {trained.map((run) => (
            <Opponent key={run.id} to={`/runs/${run.id}/play`} name={run.name} picture={run.picture}>
              <p class="soft">
                {gameTitle(run.task!)}, model {run.latest_model}
                {run.told_s && `, ${ago(run.told_s)}`}
              </p>
            </Opponent>
          ))}
        </ul>
      </section>
    </section>
  );
}

// The players that are there before anything is trained.
export function Players({ title }: { title: string }) {
  const { data: players, error } = useAsked<BundledPlayer[]>("/api/players");
  if (error) return <Trouble>{error}</Trouble>;
  if (!players || players.length === 0) return null;
  return (
    <section class="players" aria-label="Players">
      <h2>{title}</h2>
      <ul class="cards">
        {players.map((player) => (
          <Opponent
            key={player.id}
            to={player.trouble ? null : `/players/${player.id}`}
            name={gameTitle(player.name)}
            picture={player.picture}
          >
            {player.trouble && <Trouble>{player.trouble}</Trouble>}
            {player.sentence && <p>{player.sentence}</p>}
            {!player.sentence &&
              player.strength?.map((row) => (
                <p key={row.what} class="soft">
                  {row.what}: {percent(row.value)}
                </p>
              ))}
          </Opponent>
        ))}
      </ul>
    </section>
  );
}

interface OpponentProps {
  to: string | null;
  name: string;
  picture?: Picture | null;
  children: ComponentChildren;
}

function Opponent({ to, name, picture, children }: OpponentProps) {
  return (
    <li class="opponent">
      {picture ? <SmallBoard {...picture} /> : <span class="small-board" />}
      <div>
        <h3>{to ? <Link to={to}>{name}</Link> : name}</h3>
        {children}
      </div>
    </li>
  );
}
