import { useEffect, useRef, useState } from "preact/hooks";
import {
  type Analysis,
  type Game,
  type PlayInfo,
  type Position,
  ask,
  saveFile,
  send,
  sendForLines,
} from "../api";
import { Board, type Shade } from "../board";
import { chance, gameTitle, moveName, percent, resultText, sides } from "../format";
import { useAsked, useKept } from "../hooks";
import { Link } from "../link";
import { ReadyButton, RunHeader, Trouble, ValueBar, Waiting } from "../parts";
import { marksOf, plyText, Review, reviewed, type Seen } from "../review";

const LEVELS: [string, number][] = [
  ["by instinct", 1],
  ["quick", 16],
  ["usual", 100],
  ["strong", 400],
  ["strongest", 1600],
];
const SHOWN = 6;
const REVIEW_SIMULATIONS = 200;

interface Kept {
  moves: number[];
  person: 0 | 1;
  model: number | null;
}

export function PlayPage({ id, isBundled = false }: { id: string; isBundled?: boolean }) {
  const path = `/api/${isBundled ? "players" : "runs"}/${encodeURIComponent(id)}/play`;
  const { data: info, error } = useAsked<PlayInfo>(path);
  useEffect(() => {
    document.title = `Play ${id.replaceAll("~", "/")} - tengen`;
  }, [id]);
  return (
    <article>
      {isBundled ? (
        <header class="run-header">
          <h1>{gameTitle(id.replaceAll("~", "/"))}</h1>
          <Link to="/play">All players</Link>
        </header>
      ) : (
        <RunHeader id={id} name={info?.game.name ?? id.replaceAll("~", "/")} page="play" />
      )}
      {error && <Trouble>{error}</Trouble>}
      {!info && !error && <Waiting what="the model" />}
      {info && <Table key={info.game.name} path={path} info={info} id={isBundled ? `players/${id}` : id} />}
    </article>
  );
}

function Table({ path, info, id }: { path: string; info: PlayInfo; id: string }) {
  const { game } = info;
  const [kept, keep] = useKept<Kept>(`tengen-game ${id} ${game.name}`, { moves: [], person: 0, model: null });
  const [simulations, setSimulations] = useKept("tengen-simulations", Math.min(100, info.max_simulations));
  const [keptLevel, setLevel] = useKept(`tengen-level ${game.name}`, 3);
  const hasLevels = info.levels.length > 0;
  // What was kept may be of a server that allowed more.
  const offered = info.levels.map((row) => row.level);
  const level = offered.includes(keptLevel) ? keptLevel : (offered.at(-1) ?? 1);
  const [shows, setShows] = useKept("tengen-thoughts", false);
  const [position, setPosition] = useState<Position | null>(null);
  const [analysis, setAnalysis] = useState<{ found: Analysis; by: 0 | 1; at: number } | null>(null);
  const [isThinking, setThinking] = useState(false);
  const [hint, setHint] = useState<number | null>(null);
  const [said, say] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [used, setUsed] = useState(info.newest);
  const [review, setReview] = useState<{ seen: Seen[]; isOn: boolean; ply: number | null } | null>(null);
  const stop = useRef<AbortController | null>(null);
  const names = sides(game);
  const { moves, person, model } = kept;
  const isOver = position !== null && position.result !== null;
  const isTurn = position !== null && !isThinking && !isOver && position.to_play === person;

  useEffect(() => {
    resume(kept);
    return () => stop.current?.abort();
  }, []);

  // Shows a game where it stands, and lets the model move if it is to.
  async function resume(next: Kept) {
    stop.current?.abort();
    keep(next);
    setHint(null);
    setAnalysis(null);
    setThinking(false);
    setReview(null);
    setError(null);
    try {
      const at = await ask<Position>(`${path}/position`, { moves: next.moves, model: next.model });
      setPosition(at);
      if (at.model !== undefined) setUsed(at.model);
      if (at.result === null && at.to_play !== next.person) await search(next, true);
    } catch (e) {
      if (next.moves.length > 0 && (e as Error).message.includes("not legal")) {
        await resume({ ...next, moves: [] });
      } else setError((e as Error).message);
    }
  }

  async function search(next: Kept, plays: boolean) {
    stop.current?.abort();
    const control = new AbortController();
    stop.current = control;
    setThinking(true);
    setError(null);
    try {
      const strength = hasLevels ? { level } : { simulations: Math.min(simulations, info.max_simulations) };
      const asked = { moves: next.moves, model: next.model, plays, ...strength };
      let by: 0 | 1 = 0;
      for await (const line of sendForLines(`${path}/search`, asked, control.signal)) {
        if (line.kind === "position") {
          const at = line as unknown as Position;
          by = at.to_play;
          setPosition(at);
          setUsed(at.model ?? null);
          if (at.result !== null) say(outcome(at));
        } else if (line.kind === "analysis") {
          setAnalysis({ found: line as unknown as Analysis, by, at: next.moves.length });
        } else if (line.kind === "error") {
          setError(String(line.error));
        } else if (line.kind === "answer") {
          const action = line.action as number;
          if (!plays) {
            setHint(action);
            say(`Try ${moveName(game, action)}.`);
            continue;
          }
          const at = line as unknown as Position;
          keep({ ...next, moves: [...next.moves, action] });
          setPosition(at);
          say(`It plays ${moveName(game, action)}. ${at.result === null ? "" : outcome(at)}`);
          // A side that has no move passes in some games: then it moves again.
          if (at.result === null && at.to_play !== next.person) {
            setThinking(false);
            await search({ ...next, moves: [...next.moves, action] }, true);
          }
        }
      }
    } catch (e) {
      if (!control.signal.aborted) setError((e as Error).message);
    } finally {
      if (stop.current === control) setThinking(false);
    }
  }

  // Searches at full strength, whatever level was played.
  async function reviewGame() {
    stop.current?.abort();
    const control = new AbortController();
    stop.current = control;
    setError(null);
    const asked = { model, simulations: Math.min(REVIEW_SIMULATIONS, info.max_simulations) };
    let seen: Seen[] = [];
    setReview({ seen, isOn: true, ply: null });
    try {
      for await (const at of reviewed(path, moves, asked, control.signal)) {
        if (control.signal.aborted) return;
        seen = [...seen, at];
        setReview({ seen, isOn: seen.length <= moves.length, ply: null });
      }
      say("The review is ready.");
    } catch (e) {
      if (control.signal.aborted) return;
      setError((e as Error).message);
      setReview(null);
    }
  }

  function cancelReview() {
    stop.current?.abort();
    setReview(null);
    say("The review is cancelled.");
  }

  function outcome(at: Position): string {
    const own = person === 0 ? at.result! : -at.result!;
    return own > 0 ? "You win." : own < 0 ? "You lose." : "A draw.";
  }

  function play(action: number) {
    if (!isTurn) return;
    const next = { ...kept, moves: [...moves, action] };
    keep(next);
    setHint(null);
    setAnalysis(null);
    void search(next, true);
  }

  function takeBack() {
    // To the person's last turn: at least one move, two where the model answered.
    const turns = Math.max(0, moves.length - (position?.to_play === person && !isThinking ? 2 : 1));
    say("Taken back.");
    void resume({ ...kept, moves: moves.slice(0, turns) });
  }

  async function save() {
    try {
      const reply = await send(`${path}/record`, { moves, model, person });
      const named = /filename="([^"]+)"/.exec(reply.headers.get("Content-Disposition") ?? "");
      saveFile(named?.[1] ?? "game", await reply.blob());
    } catch (e) {
      setError((e as Error).message);
    }
  }

  if (!position) return error ? <Trouble>{error}</Trouble> : <Waiting what="the board" />;
  const levels = LEVELS.filter(([, n]) => n <= info.max_simulations);
  // Of a position that is not on the board any more only the table is shown.
  const ply = review?.ply ?? null;
  const seen = ply === null ? null : review!.seen[ply];
  const board = seen?.position ?? position;
  const played = ply === null ? moves : moves.slice(0, ply);
  const marks = ply === null ? [] : marksOf(moves, review!.seen, ply);
  const thoughts = shows && analysis && analysis.at === played.length ? shadesOf(analysis.found) : [];
  const valueOfFirst = analysis && (analysis.by === 0 ? analysis.found.value : -analysis.found.value);
  return (
    <div class="play">
      <div class="play-board">
        <Board
          game={game}
          board={board.board}
          label={`Board of ${game.name}, ${game.width} by ${game.height}; arrow keys move, Enter plays`}
          legal={isTurn ? position.legal : []}
          last={played.length > 0 && boardHasLast(played, board, game) ? played[played.length - 1] : null}
          toPlay={board.to_play}
          shades={ply === null ? thoughts : marks}
          hint={seen ? seen.best : hint}
          onPlay={play}
        />
        <p class={`turn ${isOver ? "turn-over" : ""}`} role="status">
          {seen
            ? plyText(game, moves, review!.seen, ply!, person)
            : isOver
            ? outcome(position)
            : isThinking && !isTurn && position.to_play !== person
              ? "It thinks ..."
              : isThinking
                ? "Looking for a hint ..."
                : `Your turn, ${names[person]}.`}
          {isOver && !seen && <span class="soft"> {resultText(game, position.result)}</span>}
        </p>
        <p class="hidden" aria-live="polite">{said}</p>
        {error && <Trouble>{error}</Trouble>}
        <div class="buttons">
          {game.has_pass && (
            <ReadyButton isReady={isTurn} onClick={() => play(game.num_actions - 1)}>
              Pass
            </ReadyButton>
          )}
          <ReadyButton isReady={isTurn} onClick={() => void search(kept, false)}>
            Hint
          </ReadyButton>
          <ReadyButton isReady={moves.length > 0} onClick={takeBack}>
            Take back
          </ReadyButton>
          <ReadyButton isReady={moves.length > 0} onClick={() => void save()}>
            Save
          </ReadyButton>
          {isOver && moves.length > 0 && (
            <ReadyButton
              isReady={!review || review.isOn}
              onClick={() => (review ? cancelReview() : void reviewGame())}
            >
              {review?.isOn ? "Cancel the review" : "Review the game"}
            </ReadyButton>
          )}
          <button type="button" class="main-button" onClick={() => void resume({ ...kept, moves: [] })}>
            New game
          </button>
        </div>
      </div>
      <div class="play-side">
        {review && (
          <Review
            game={game}
            moves={moves}
            person={person}
            {...review}
            onShow={(at) => setReview({ ...review, ply: at })}
          />
        )}
        <fieldset>
          <legend>Opponent</legend>
          {info.newest !== null && <label>
            Model
            <select
              value={model === null ? "" : String(model)}
              onChange={(event) => {
                const { value } = event.currentTarget;
                void resume({ ...kept, model: value === "" ? null : Number(value) });
              }}
            >
              <option value="">the newest ({used})</option>
              {[...info.models].reverse().map((number) => (
                <option key={number} value={String(number)}>
                  {number}
                </option>
              ))}
            </select>
          </label>}
          {hasLevels ? (
            <label>
              Level (Elo above random)
              <select value={String(level)} onChange={(event) => setLevel(Number(event.currentTarget.value))}>
                {info.levels.map((row) => (
                  <option key={row.level} value={String(row.level)}>
                    {row.level} {row.name} ({Math.round(row.rating)})
                  </option>
                ))}
              </select>
            </label>
          ) : (
            <label>
              Strength (simulations)
              <select value={String(simulations)} onChange={(event) => setSimulations(Number(event.currentTarget.value))}>
                {levels.map(([word, n]) => (
                  <option key={n} value={String(n)}>
                    {word} ({n})
                  </option>
                ))}
              </select>
            </label>
          )}
          <label>
            You are
            <select
              value={String(person)}
              onChange={(event) => void resume({ ...kept, person: Number(event.currentTarget.value) as 0 | 1 })}
            >
              <option value="0">{names[0]}, first</option>
              <option value="1">{names[1]}, second</option>
            </select>
          </label>
          <label class="check">
            <input type="checkbox" checked={shows} onChange={(event) => setShows(event.currentTarget.checked)} />
            Show what it thinks
          </label>
        </fieldset>
        {shows && (
          <section class="thoughts" aria-label="What it thinks">
            {analysis ? (
              <>
                <ValueBar value={valueOfFirst!} names={names} />
                <p class="soft">
                  {analysis.found.simulations} simulation{analysis.found.simulations === 1 ? "" : "s"}
                  {analysis.found.certain && ", certain"}, {names[analysis.by]} to move
                  {analysis.at < moves.length && `, before ${moveName(game, moves[analysis.at])}`}
                </p>
                <Actions game={game} analysis={analysis.found} />
              </>
            ) : (
              <p class="soft">It has not thought about this position.</p>
            )}
          </section>
        )}
        <Moves game={game} moves={moves} />
      </div>
    </div>
  );
}

// Whether the board that is shown has the last move: a model's may be on its way.
function boardHasLast(moves: number[], position: Position, game: Game): boolean {
  const last = moves[moves.length - 1];
  if (game.shape !== "cells" || last >= game.width * game.height) return game.shape === "columns";
  return position.board[last] !== ".";
}

export function shadesOf(found: Analysis): Shade[] {
  const most = Math.max(...found.actions.map((row) => row.visits), 1);
  return found.actions
    .filter((row) => row.visits > 0)
    .slice(0, 24)
    .map((row, place) => ({
      action: row.action,
      share: row.visits / most,
      text: place < SHOWN ? String(Math.round(100 * chance(row.value))) : undefined,
    }));
}

export function Actions({ game, analysis }: { game: Game; analysis: Analysis }) {
  return (
    <div class="scroll">
      <table class="actions">
        <thead>
          <tr>
            <th scope="col">Move</th>
            <th scope="col">Visits</th>
            <th scope="col">Prior</th>
            <th scope="col">Wins</th>
            <th scope="col">And then</th>
          </tr>
        </thead>
        <tbody>
          {analysis.actions.slice(0, SHOWN).map((row) => (
            <tr key={row.action}>
              <td>{moveName(game, row.action)}</td>
              <td>{row.visits}</td>
              <td>{percent(row.prior)}</td>
              <td>{row.visits ? percent(chance(row.value)) : "-"}</td>
              <td class="soft">
                {row.variation
                  .slice(1, 5)
                  .map((action) => moveName(game, action).replace("column ", ""))
                  .join(" ")}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Moves({ game, moves }: { game: Game; moves: number[] }) {
  if (moves.length === 0) return null;
  return (
    <section>
      <h2 class="small">Moves</h2>
      <ol class="moves">
        {moves.map((move, ply) => (
          <li key={ply}>{moveName(game, move)}</li>
        ))}
      </ol>
    </section>
  );
}
