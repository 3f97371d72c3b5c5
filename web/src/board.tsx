// One board for every game: a picture, and over it a button for each place to play.
// The picture is for the eye alone; the buttons are what keyboards and readers find.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Game } from "./api";
import { moveName, sides } from "./format";

export interface Shade {
  action: number;
  share: number; // in [0, 1], of the strongest
  text?: string;
}

interface Props {
  game: Game;
  board: string;
  label: string;
  legal?: number[];
  last?: number | null;
  toPlay?: 0 | 1;
  shades?: Shade[];
  hint?: number | null;
  owners?: number[]; // a cell, 1 where it will be the first player's, -1 the second's
  onPlay?: (action: number) => void;
}

interface Margins {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

// Around the cells, in cells: room for the names of columns and rows, of one size on
// every board.
function margins(game: Game): Margins {
  const unit = Math.max(game.width, game.height) / 9;
  const edge = 0.12 * unit;
  if (style(game) === "columns") {
    return { left: 2 * edge, top: 2 * edge, right: 2 * edge, bottom: 0.45 * unit };
  }
  if (game.letters === "" || style(game) !== "stones") {
    return { left: 2 * edge, top: 2 * edge, right: 2 * edge, bottom: 2 * edge };
  }
  return { left: 0.4 * unit, top: edge, right: edge, bottom: 0.4 * unit };
}

export function Board(props: Props) {
  if (props.game.shape === "text") return <TextBoard {...props} />;
  const { game } = props;
  const { width, height } = game;
  const [at, setAt] = useState(Math.floor(height / 2) * width + Math.floor(width / 2));
  const box = useRef<HTMLDivElement>(null);
  const isColumns = game.shape === "columns";
  const places = isColumns ? width : width * height;
  const perRow = width;
  const focusable = Math.min(at, places - 1);

  function move(event: KeyboardEvent) {
    const steps: Record<string, number> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: isColumns ? 0 : -perRow,
      ArrowDown: isColumns ? 0 : perRow,
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const sideways = Math.abs(step) === 1;
    const next = focusable + step;
    const row = Math.floor(focusable / perRow);
    if (next < 0 || next >= places) return;
    if (sideways && Math.floor(next / perRow) !== row) return;
    setAt(next);
    box.current?.querySelectorAll("button")[next]?.focus();
  }

  const room = margins(game);
  const wide = width + room.left + room.right;
  const high = height + room.top + room.bottom;
  const part = (n: number, whole: number) => `${(100 * n) / whole}%`;
  return (
    <div class={`board board-${style(game)}`} style={{ aspectRatio: `${wide} / ${high}` }}>
      <svg viewBox={`${-room.left} ${-room.top} ${wide} ${high}`} aria-hidden="true">
        <Ground game={game} room={room} />
        <Pieces {...props} />
      </svg>
      <div
        ref={box}
        class="board-places"
        role="group"
        aria-label={props.label}
        onKeyDown={move}
        style={{
          left: part(room.left, wide),
          top: part(room.top, high),
          width: part(width, wide),
          height: part(height, high),
          gridTemplateColumns: `repeat(${width}, 1fr)`,
          gridTemplateRows: `repeat(${isColumns ? 1 : height}, 1fr)`,
        }}
      >
        {Array.from({ length: places }, (_, place) => {
          const canPlay = props.onPlay !== undefined && !!props.legal?.includes(place);
          return (
            <button
              key={place}
              type="button"
              data-action={place}
              tabIndex={place === focusable ? 0 : -1}
              aria-label={placeLabel(props, place)}
              aria-disabled={!canPlay}
              class={canPlay ? `can-play by-${props.toPlay}` : ""}
              onFocus={() => setAt(place)}
              onClick={() => canPlay && props.onPlay!(place)}
            />
          );
        })}
      </div>
    </div>
  );
}

// A small picture of a board, without buttons or names.
export function SmallBoard({ game, board }: { game: Game; board: string }) {
  const unnamed = { ...game, letters: "" };
  const edge = 0.02 * Math.max(game.width, game.height);
  const room = { left: edge, top: edge, right: edge, bottom: edge };
  const [wide, high] = [game.width + 2 * edge, game.height + 2 * edge];
  return (
    <div class={`board board-${style(game)} small-board`}>
      <svg viewBox={`${-edge} ${-edge} ${wide} ${high}`} aria-hidden="true">
        <Ground game={unnamed} room={room} />
        <Pieces game={unnamed} board={board} label="" />
      </svg>
    </div>
  );
}

function style(game: Game): string {
  if (game.shape === "columns") return "columns";
  return game.name === "tictactoe" ? "marks" : "stones";
}

function placeLabel({ game, board, last }: Props, place: number): string {
  const names = sides(game);
  const what = (cell: string) =>
    cell === "X" ? names[0] : cell === "O" ? names[1] : "empty";
  if (game.shape === "columns") {
    let count = 0;
    for (let row = 0; row < game.height; row++) {
      if (board[row * game.width + place] !== ".") count++;
    }
    const top = board[(game.height - count) * game.width + place];
    return count === 0
      ? `column ${place}, empty`
      : `column ${place}, ${count} of ${game.height}, ${what(top)} on top`;
  }
  const isLast = place === last ? ", last move" : "";
  return `${moveName(game, place)}, ${what(board[place])}${isLast}`;
}

function Ground({ game, room }: { game: Game; room: Margins }) {
  const { width, height } = game;
  const kind = style(game);
  if (kind === "columns") {
    const [wide, high] = [width + room.left + room.right, height + room.top + room.bottom];
    return (
      <g>
        <rect class="frame" x={-room.left} y={-room.top} width={wide} height={high} rx={0.25} />
        {room.bottom > room.top &&
          Array.from({ length: width }, (_, x) => (
            <text class="coordinate" x={x + 0.5} y={height + 0.22} font-size={0.24}>
              {x}
            </text>
          ))}
      </g>
    );
  }
  const lines = [];
  if (kind === "marks") {
    for (let i = 1; i < width; i++) {
      lines.push(<line x1={i} y1={0.1} x2={i} y2={height - 0.1} />);
      lines.push(<line x1={0.1} y1={i} x2={width - 0.1} y2={i} />);
    }
  } else {
    for (let x = 0; x < width; x++) {
      lines.push(<line x1={x + 0.5} y1={0.5} x2={x + 0.5} y2={height - 0.5} />);
    }
    for (let y = 0; y < height; y++) {
      lines.push(<line x1={0.5} y1={y + 0.5} x2={width - 0.5} y2={y + 0.5} />);
    }
  }
  const size = Math.max(width, height) / 9;
  const named = game.letters !== "" && kind === "stones";
  return (
    <g>
      <rect
        class="wood"
        x={-room.left}
        y={-room.top}
        width={width + room.left + room.right}
        height={height + room.top + room.bottom}
        rx={0.25 * size}
      />
      <g class="lines">{lines}</g>
      {kind === "stones" &&
        stars(width, height).map(([x, y]) => (
          <circle class="star" cx={x + 0.5} cy={y + 0.5} r={0.07 * Math.min(1.4, size)} />
        ))}
      {named &&
        [...game.letters].map((letter, x) => (
          <text class="coordinate" x={x + 0.5} y={height + 0.22 * size} font-size={0.26 * size}>
            {letter}
          </text>
        ))}
      {named &&
        Array.from({ length: height }, (_, y) => (
          <text class="coordinate" x={-0.2 * size} y={y + 0.5 + 0.09 * size} font-size={0.26 * size}>
            {height - y}
          </text>
        ))}
    </g>
  );
}

function stars(width: number, height: number): [number, number][] {
  const along = (n: number) => {
    if (n < 7 || n % 2 === 0) return n % 2 === 1 && n > 3 ? [(n - 1) / 2] : [];
    const edge = n < 13 ? 2 : 3;
    return n > 9 || n === 9 ? [edge, (n - 1) / 2, n - 1 - edge] : [(n - 1) / 2];
  };
  const found: [number, number][] = [];
  const [xs, ys] = [along(width), along(height)];
  for (const x of xs) {
    for (const y of ys) {
      const middle = x === (width - 1) / 2 || y === (height - 1) / 2;
      const centre = x === (width - 1) / 2 && y === (height - 1) / 2;
      if (!middle || centre || width > 13) found.push([x, y]);
    }
  }
  return found;
}

function Pieces({ game, board, last, shades, hint, owners }: Props) {
  const kind = style(game);
  const { width, height } = game;
  const pieces = [];
  for (let place = 0; place < width * height; place++) {
    const [x, y] = [(place % width) + 0.5, Math.floor(place / width) + 0.5];
    const cell = board[place];
    if (kind === "columns") {
      const name = cell === "X" ? "disc-0" : cell === "O" ? "disc-1" : "hole";
      pieces.push(<circle key={place} class={name} cx={x} cy={y} r={0.41} />);
    } else if (cell === ".") {
      continue;
    } else if (kind === "marks") {
      pieces.push(
        cell === "X" ? (
          <path key={place} class="mark-0" d={`M${x - 0.25} ${y - 0.25}l.5 .5m0 -.5l-.5 .5`} />
        ) : (
          <circle key={place} class="mark-1" cx={x} cy={y} r={0.27} />
        ),
      );
    } else {
      const name = cell === "X" ? "stone-0" : "stone-1";
      pieces.push(<circle key={place} class={name} cx={x} cy={y} r={0.46} />);
    }
  }
  const spot = (action: number): [number, number] | null => {
    if (kind === "columns") {
      for (let row = height - 1; row >= 0; row--) {
        if (board[row * width + action] === ".") return [action + 0.5, row + 0.5];
      }
      return null;
    }
    if (action >= width * height) return null;
    return [(action % width) + 0.5, Math.floor(action / width) + 0.5];
  };
  let marked: [number, number] | null = null;
  if (last !== null && last !== undefined) {
    if (kind === "columns") {
      for (let row = 0; row < height && marked === null; row++) {
        if (board[row * width + last] !== ".") marked = [last + 0.5, row + 0.5];
      }
    } else {
      marked = spot(last);
    }
  }
  const cellAt = marked && board[Math.floor(marked[1]) * width + Math.floor(marked[0])];
  return (
    <g>
      {pieces}
      {(owners ?? []).map((value, place) => {
        const side = 0.4 * Math.abs(value);
        if (side < 0.06) return null;
        const [x, y] = [(place % width) + 0.5, Math.floor(place / width) + 0.5];
        return (
          <rect
            key={`owner ${place}`}
            class={value > 0 ? "owner-0" : "owner-1"}
            x={x - side / 2}
            y={y - side / 2}
            width={side}
            height={side}
          />
        );
      })}
      {(shades ?? []).map(({ action, share, text }) => {
        const found = spot(action);
        if (found === null) return null;
        return (
          <g key={action}>
            <circle class="shade" cx={found[0]} cy={found[1]} r={0.44} opacity={0.16 + 0.74 * share} />
            {text && (
              <text class="shade-text" x={found[0]} y={found[1] + 0.11}>
                {text}
              </text>
            )}
          </g>
        );
      })}
      {hint !== null && hint !== undefined && spot(hint) && (
        <circle class="hint" cx={spot(hint)![0]} cy={spot(hint)![1]} r={0.4} />
      )}
      {marked && kind !== "marks" && (
        <circle class={`last last-on-${cellAt === "X" ? 0 : 1}`} cx={marked[0]} cy={marked[1]} r={0.17} />
      )}
    </g>
  );
}

// Games whose boards only they can draw: their own text, and a button for each move.
function TextBoard({ game, board, legal, label, onPlay }: Props) {
  const moves = useRef<HTMLDivElement>(null);
  const hasPlayed = useRef(false);
  // A move that was played is gone with its button; the next one is found again.
  useEffect(() => {
    if (!hasPlayed.current || !legal?.length) return;
    hasPlayed.current = false;
    if (document.activeElement === document.body) moves.current?.querySelector("button")?.focus();
  }, [legal]);
  const play = (action: number) => {
    hasPlayed.current = true;
    onPlay!(action);
  };
  return (
    <div class="text-board">
      <pre>{board}</pre>
      {onPlay && (
        <div ref={moves} role="group" aria-label={label} class="text-moves">
          {(legal ?? []).map((action) => (
            <button key={action} type="button" data-action={action} onClick={() => play(action)}>
              {moveName(game, action)}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
