import { useEffect, useRef, useState } from "preact/hooks";
import { type Analysis, type Forecast, type KeptGame, type Position, report, sendForLines } from "../api";
import { Board, type Shade } from "../board";
import { Chart } from "../chart";
import { moveName, number, percent, resultText, sides } from "../format";
import { useAsked } from "../hooks";
import { go } from "../link";
import { nameOf, ReadyButton, RunHeader, Trouble, ValueBar, Waiting } from "../parts";
import { Actions, shadesOf } from "./play";

interface SourceRow {
  id: string;
  kind: string;
  title: string;
}

interface GameRow {
  index: number;
  title: string;
  num_plies: number;
  result: number | null;
  variant: string;
}

const SHOWN_GAMES = 200;
const SHOWN_ACTIONS = 6;

export function GamesPage({ id, query }: { id: string; query: URLSearchParams }) {
  const base = `/api/runs/${encodeURIComponent(id)}/games`;
  const { data: sources, error } = useAsked<SourceRow[]>(base);
  const source = query.get("of") ?? sources?.[0]?.id ?? null;
  const games = useAsked<{ title: string; num_games: number; games: GameRow[] }>(
    source === null ? null : `${base}/${encodeURIComponent(source)}`,
  );
  const index = query.get("game") ?? games.data?.games[0]?.index.toString() ?? null;
  const game = useAsked<KeptGame>(
    source === null || index === null ? null : `${base}/${encodeURIComponent(source)}/${index}`,
  );
  useEffect(() => {
    document.title = `Games of ${nameOf(id)} - tengen`;
  }, [id]);
  const show = (of: string, one?: string) =>
    go(`/runs/${id}/games?of=${encodeURIComponent(of)}${one ? `&game=${one}` : ""}`, "replace");
  const trouble = error ?? games.error ?? game.error;
  return (
    <article>
      <RunHeader id={id} name={nameOf(id)} page="games" />
      {trouble && <Trouble>{trouble}</Trouble>}
      {!sources && !error && <Waiting what="the games" />}
      {sources?.length === 0 && <p class="soft">No games are kept yet.</p>}
      {sources && sources.length > 0 && (
        <div class="games-choice">
          <label>
            Games of
            <select value={source ?? ""} onChange={(event) => show(event.currentTarget.value)}>
              {sources.map((row) => (
                <option key={row.id} value={row.id}>
                  {row.title}
                </option>
              ))}
            </select>
          </label>
          {games.data && games.data.games.length > 0 && (
            <label>
              Game
              <select value={index ?? ""} onChange={(event) => show(source!, event.currentTarget.value)}>
                {games.data.games.slice(0, SHOWN_GAMES).map((row) => (
                  <option key={row.index} value={String(row.index)}>
                    {row.index}: {row.title}, {row.num_plies} moves
                    {row.variant && `, ${row.variant}`}
                  </option>
                ))}
              </select>
            </label>
          )}
          {source && index && !report && (
            <a class="button" href={`${base}/${encodeURIComponent(source)}/${index}/record`} download>
              Save
            </a>
          )}
        </div>
      )}
      {games.data?.games.length === 0 && <p class="soft">None is finished yet.</p>}
      {game.data && <Viewer key={`${source} ${index}`} kept={game.data} id={id} />}
    </article>
  );
}

function Viewer({ kept, id }: { kept: KeptGame; id: string }) {
  const { game, moves, positions } = kept;
  const [ply, setPly] = useState(kept.num_opening_plies);
  const [isHeat, setHeat] = useState(true);
  const [seen, setSeen] = useState<{ ply: number; found: Analysis } | null>(null);
  const [forecast, setForecast] = useState<{ ply: number; found: Forecast } | null>(null);
  const [error, setError] = useState<string | null>(null);
  const stop = useRef<AbortController | null>(null);
  const last = positions.length - 1;
  const names = sides(game);
  const position: Position = positions[ply];
  const search = kept.plies[ply] ?? null;
  const to = (next: number) => setPly(Math.max(0, Math.min(last, next)));

  useEffect(() => () => stop.current?.abort(), []);
  useEffect(() => {
    const keyed = (event: KeyboardEvent) => {
      if (/^(INPUT|SELECT|TEXTAREA|BUTTON)$/.test((event.target as HTMLElement).tagName)) return;
      const steps: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, Home: -last, End: last };
      if (event.key in steps && !event.altKey && !event.metaKey && !event.ctrlKey) {
        event.preventDefault();
        setPly((p) => Math.max(0, Math.min(last, p + steps[event.key])));
      }
    };
    addEventListener("keydown", keyed);
    return () => removeEventListener("keydown", keyed);
  }, [last]);

  async function ask() {
    stop.current?.abort();
    stop.current = new AbortController();
    setError(null);
    const asked = { moves: moves.slice(0, ply), model: null, forecasts: true };
    const path = `/api/runs/${encodeURIComponent(id)}/play/search`;
    try {
      for await (const line of sendForLines(path, asked, stop.current.signal)) {
        if (line.kind === "analysis") setSeen({ ply, found: line as unknown as Analysis });
        if (line.kind === "forecast") setForecast({ ply, found: line as unknown as Forecast });
        if (line.kind === "error") setError(String(line.error));
      }
    } catch (e) {
      if (!stop.current.signal.aborted) setError((e as Error).message);
    }
  }

  const analysis = seen && seen.ply === ply ? seen.found : null;
  const end = forecast && forecast.ply === ply ? forecast.found : null;
  const sign = position.to_play === 0 ? 1 : -1;
  const value = search ? (position.to_play === 0 ? search.value : -search.value) : null;
  let shades: Shade[] = [];
  if (isHeat && analysis) shades = shadesOf(analysis);
  else if (isHeat && search) shades = heat(search.policy);
  const curve = kept.plies
    .map((each, i) => ({ i, value: each && (positions[i].to_play === 0 ? each.value : -each.value) }))
    .filter((each) => each.value !== null);
  return (
    <div class="play">
      <div class="play-board">
        <Board
          game={game}
          board={position.board}
          label={`Board after ${ply} moves`}
          last={ply > 0 && moves[ply - 1] < game.num_actions ? moves[ply - 1] : null}
          shades={shades}
          owners={end && isHeat ? end.ownership.map((each) => sign * each) : undefined}
        />
        <div class="player">
          <ReadyButton isReady={ply > 0} onClick={() => to(0)} aria-label="To the start">&laquo;</ReadyButton>
          <ReadyButton isReady={ply > 0} onClick={() => to(ply - 1)} aria-label="One move back">&lsaquo;</ReadyButton>
          <input
            type="range"
            min={0}
            max={last}
            value={ply}
            aria-label="Move"
            aria-valuetext={plyText(kept, ply)}
            onInput={(event) => to(Number(event.currentTarget.value))}
          />
          <ReadyButton isReady={ply < last} onClick={() => to(ply + 1)} aria-label="One move on">&rsaquo;</ReadyButton>
          <ReadyButton isReady={ply < last} onClick={() => to(last)} aria-label="To the end">&raquo;</ReadyButton>
        </div>
        <p class="turn" role="status">{plyText(kept, ply)}</p>
      </div>
      <div class="play-side">
        <p>
          {kept.title}: <b>{resultText(game, kept.result)}</b> <span class="soft">after {moves.length} moves</span>
        </p>
        {value !== null && <ValueBar value={value} names={names} />}
        {curve.length > 1 && (
          <Chart
            title={`Value for ${names[0]}, as the search saw it`}
            xLabel="move"
            height={150}
            range={[-1, 1]}
            lines={[{ label: "value", x: curve.map((each) => each.i), y: curve.map((each) => each.value!) }]}
            onPick={(x) => to(Math.round(x))}
            cursorX={ply}
          />
        )}
        <label class="check">
          <input type="checkbox" checked={isHeat} onChange={(event) => setHeat(event.currentTarget.checked)} />
          Show the policy on the board
        </label>
        {search && !analysis && (
          <div class="scroll">
            <table class="actions">
              <caption>
                {search.simulations} simulations
                {search.lead !== null && `, lead ${number(search.lead)} points`}
              </caption>
              <thead>
                <tr>
                  <th scope="col">Move</th>
                  <th scope="col">Policy</th>
                </tr>
              </thead>
              <tbody>
                {[...search.policy]
                  .sort((a, b) => b[1] - a[1])
                  .slice(0, SHOWN_ACTIONS)
                  .map(([action, share]) => (
                    <tr key={action}>
                      <td>
                        {moveName(game, action)}
                        {action === moves[ply] && <span class="soft"> played</span>}
                      </td>
                      <td>{percent(share)}</td>
                    </tr>
                  ))}
              </tbody>
            </table>
            {search.policy.length === 0 && <p class="soft">A quick search, whose policy is not learned from.</p>}
          </div>
        )}
        {analysis && <Actions game={game} analysis={analysis} />}
        {end && (
          <p class="soft">
            The network expects {names[sign * end.score > 0 ? 0 : 1]} by {number(Math.abs(end.score))} points; squares
            show whose each point will be.
          </p>
        )}
        {error && <Trouble>{error}</Trouble>}
        {position.result === null && !report && (
          <button type="button" onClick={() => void ask()}>
            Ask the newest model
          </button>
        )}
      </div>
    </div>
  );
}

function plyText(kept: KeptGame, ply: number): string {
  if (ply === 0) return `Start of ${kept.moves.length} moves`;
  const mover = sides(kept.game)[kept.positions[ply - 1].to_play];
  const opening = ply <= kept.num_opening_plies ? ", opening" : "";
  return `Move ${ply} of ${kept.moves.length}: ${mover} ${moveName(kept.game, kept.moves[ply - 1])}${opening}`;
}

function heat(policy: [number, number][]): Shade[] {
  const most = Math.max(...policy.map(([, share]) => share), 1e-9);
  return policy
    .filter(([, share]) => share >= 0.02)
    .map(([action, share]) => ({
      action,
      share: share / most,
      text: share >= 0.05 ? String(Math.round(100 * share)) : undefined,
    }));
}
