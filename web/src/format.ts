import type { Game } from "./api";

const LARGE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const UNITS: [number, string][] = [
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
];

export function number(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "-";
  if (Math.abs(value) >= 1000) return LARGE.format(value);
  return String(Number(value.toPrecision(digits)));
}

// Text of a terminal as a page writes it.
export function shown(text: string): string {
  return text.replaceAll(" +- ", " \u00b1 ");
}

export function bytes(value: number): string {
  for (const [size, unit] of UNITS) {
    if (value >= size) return `${(value / size).toPrecision(3)} ${unit}`;
  }
  return `${value} B`;
}

export function clock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const two = (n: number) => String(n).padStart(2, "0");
  return hours > 0
    ? `${hours}:${two(minutes)}:${two(whole % 60)}`
    : `${minutes}:${two(whole % 60)}`;
}

export function ago(time_s: number): string {
  const seconds = Math.max(0, Date.now() / 1000 - time_s);
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} days ago`;
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

// A value in [-1, 1] as a chance, draws counting half.
export function chance(value: number): number {
  return 0.5 + 0.5 * Math.min(1, Math.max(-1, value));
}

export function moveName(game: Game, action: number): string {
  if (game.shape === "columns") return `column ${action}`;
  if (game.shape === "text") return `action ${action}`;
  if (game.has_pass && action === game.num_actions - 1) return "pass";
  const row = Math.floor(action / game.width);
  return `${game.letters[action % game.width]}${game.height - row}`;
}

// A game's name for people; other tasks keep theirs.
export function gameTitle(task: string): string {
  const [family, size, ...more] = task.split("/");
  const title = { go: "Go", gomoku: "Gomoku", connect4: "Connect Four", tictactoe: "Tic-tac-toe" }[family];
  if (!title || more.length > 0) return task;
  return size ? `${title} ${size}x${size}` : title;
}

// What the sides are called, the first player first.
export function sides(game: Game): [string, string] {
  if (game.name === "tictactoe") return ["X", "O"];
  if (game.shape === "columns") return ["Red", "Yellow"];
  if (game.shape === "cells") return ["Black", "White"];
  return ["First", "Second"];
}

export function resultText(game: Game, result: number | null): string {
  if (result === null) return "no result";
  const [first, second] = sides(game);
  return result > 0 ? `${first} wins` : result < 0 ? `${second} wins` : "a draw";
}
