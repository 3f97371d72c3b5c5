// The review of a finished game: what it finds, and what the page shows of it.

import { useMemo } from "preact/hooks";
import type { Analysis, Game, Position } from "./api";
import { sendForLines } from "./api";
import type { Shade } from "./board";
import { Chart } from "./chart";
import { chance, moveName, percent, sides } from "./format";

const WORST = 3;
// Smaller losses are noise of the search.
const LEAST_LOSS = 0.02;

// A position of the game, with the first player's winning chance. At the end there is
// no better move.
export interface Seen {
  position: Position;
  chance: number;
  best: number | null;
}

interface Loss {
  ply: number; // of the position before the move
  before: number; // the winning chance of who moved
  after: number;
}

// Searches each position of a game in turn. Gives each one as soon as it is known.
export async function* reviewed(
  path: string,
  moves: number[],
  asked: Record<string, unknown>,
  signal: AbortSignal,
): AsyncGenerator<Seen> {
  for (let ply = 0; ply <= moves.length; ply++) {
    let position: Position | null = null;
    let found: Analysis | null = null;
    const body = { ...asked, moves: moves.slice(0, ply), plays: false };
    for await (const line of sendForLines(`${path}/search`, body, signal)) {
      if (line.kind === "position") position = line as unknown as Position;
      if (line.kind === "analysis") found = line as unknown as Analysis;
      if (line.kind === "error") throw new Error(String(line.error));
    }
    if (position === null || (found === null && position.result === null)) {
      throw new Error("the server does not answer");
    }
    const value = found === null ? position.result! : position.to_play === 0 ? found.value : -found.value;
    yield { position, chance: chance(value), best: found && found.best };
  }
}

// The moves that lost most, the worst first. The best move loses nothing.
export function worstMoves(moves: number[], seen: Seen[]): Loss[] {
  const losses = moves.slice(0, Math.max(0, seen.length - 1)).map((_, ply): Loss => {
    const isFirst = seen[ply].position.to_play === 0;
    const [before, after] = [seen[ply], seen[ply + 1]].map((at) => (isFirst ? at.chance : 1 - at.chance));
    return { ply, before, after };
  });
  return losses
    .filter(({ ply, before, after }) => moves[ply] !== seen[ply].best && before - after >= LEAST_LOSS)
    .sort((a, b) => b.before - b.after - (a.before - a.after))
    .slice(0, WORST);
}

interface Props {
  game: Game;
  moves: number[];
  person: 0 | 1;
  seen: Seen[];
  isOn: boolean; // positions are still being searched
  ply: number | null; // the position that the board shows
  onShow: (ply: number) => void;
}

export function Review({ game, moves, person, seen, isOn, ply, onShow }: Props) {
  const lines = useMemo(
    () => [
      {
        label: "your chance",
        x: seen.map((_, i) => i),
        y: seen.map((at) => (person === 0 ? at.chance : 1 - at.chance)),
      },
    ],
    [seen, person],
  );
  const worst = isOn ? [] : worstMoves(moves, seen);
  const show = (at: number) => onShow(Math.max(0, Math.min(seen.length - 1, at)));
  return (
    <section class="review" aria-label="Review of the game">
      <h2 class="small">Review</h2>
      {isOn && (
        <label>
          Looking at position {seen.length + 1} of {moves.length + 1}
          <progress max={moves.length + 1} value={seen.length} />
        </label>
      )}
      {seen.length > 1 && (
        <Chart
          title="Your winning chance"
          xLabel="move"
          isShare
          height={150}
          lines={lines}
          onPick={isOn ? undefined : (x) => show(Math.round(x))}
          cursorX={ply ?? undefined}
        />
      )}
      {!isOn && (
        <>
          <label>
            {ply === 0 ? "Start of the game" : `Position after move ${ply ?? moves.length}`}
            <input
              type="range"
              min={0}
              max={moves.length}
              value={ply ?? moves.length}
              onInput={(event) => show(Number(event.currentTarget.value))}
            />
          </label>
          {worst.length === 0 ? (
            <p>No move lost much.</p>
          ) : (
            <>
              <h2 class="small">Moves that lost most</h2>
              <ol class="worst">
                {worst.map((loss) => (
                  <li key={loss.ply}>
                    <button type="button" aria-pressed={ply === loss.ply} onClick={() => show(loss.ply)}>
                      <b>
                        Move {loss.ply + 1}, {moveName(game, moves[loss.ply])}
                      </b>{" "}
                      by {who(game, seen[loss.ply].position.to_play, person)}
                      <span>
                        Winning chance: from {percent(loss.before)} to {percent(loss.after)}. Better:{" "}
                        {moveName(game, seen[loss.ply].best!)}
                      </span>
                    </button>
                  </li>
                ))}
              </ol>
            </>
          )}
        </>
      )}
    </section>
  );
}

// Marks a move that lost much, on the position before it.
export function marksOf(moves: number[], seen: Seen[], ply: number): Shade[] {
  const isBad = worstMoves(moves, seen).some((loss) => loss.ply === ply);
  return isBad ? [{ action: moves[ply], share: 0.5, text: "?" }] : [];
}

// What the page says of a position that is shown.
export function plyText(game: Game, moves: number[], seen: Seen[], ply: number, person: 0 | 1): string {
  const { position, best } = seen[ply];
  if (ply === moves.length) return "End of the game.";
  const mover = who(game, position.to_play, person);
  const name = moveName(game, moves[ply]);
  const played = `Move ${ply + 1}: ${mover} ${name === "pass" ? "passed" : `played ${name}`}.`;
  if (best === moves[ply]) return `${played} No move is better.`;
  return `${played} Better: ${moveName(game, best!)}.`;
}

function who(game: Game, side: 0 | 1, person: 0 | 1): string {
  return `${sides(game)[side]} (${side === person ? "you" : "model"})`;
}
