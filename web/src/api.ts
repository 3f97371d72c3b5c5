// What the server answers, and how it is asked.

export interface CurveData {
  step: number[];
  time_s: number[];
  value: number[];
}

export interface RunSummary {
  id: string;
  name: string;
  error?: string;
  task?: string;
  in_environments?: boolean;
  state?: string;
  latest_model?: number | null;
  told_s?: number | null;
  headline?: string | null;
  curve?: CurveData | null;
  rows_per_s?: number | null;
  evaluations_per_s?: number | null;
  eta_s?: number | null;
  loss?: number | null;
  rating?: number | null;
  rating_error?: number | null;
  mean_return?: number | null;
  verdict?: string | null;
  stage?: string | null;
  num_games?: number | null;
  num_episodes?: number | null;
  // Null for environments, and for games without a board of cells.
  picture?: Picture | null;
}

// A game's board early in an opening.
export interface Picture {
  game: Game;
  board: string;
}

export interface Role {
  role: string;
  process: string | null;
  writer: string | null;
  state: string;
  age_s: number | null;
}

export interface Place {
  place: string;
  host: string;
  name: string;
  roles: string[];
  num_threads: number;
}

export interface Status {
  task: string | null;
  running: string | null;
  latest_model: number | null;
  num_models: number;
  num_candidates: number;
  num_rejected: number;
  latest_checkpoint: number | null;
  experience_bytes: number;
  free_bytes: number;
  gate: { candidate: number; accepted: boolean | null; summary: string } | null;
  roles: Role[];
  places: Place[];
  lost: string[];
  ratio: string | null;
  progress: { verdict?: string; eta_s?: number } | null;
}

export interface RunState {
  id: string;
  name: string;
  state: string;
  facts: [string, string][];
  memory: Record<string, number>;
  status: Status;
}

export interface RunData {
  run: RunState;
  in_environments: boolean;
  config: unknown;
  curves: Record<string, CurveData>;
}

export interface Game {
  name: string;
  family: string;
  shape: "cells" | "columns" | "text";
  height: number;
  width: number;
  letters: string;
  num_actions: number;
  has_pass: boolean;
}

export interface Position {
  to_play: 0 | 1;
  board: string;
  legal?: number[];
  result: number | null;
  model?: number;
}

export interface ActionRow {
  action: number;
  visits: number;
  prior: number;
  policy: number;
  value: number;
  variation: number[];
}

export interface Analysis {
  value: number;
  network_value: number;
  score: number | null;
  best: number;
  simulations: number;
  certain: boolean;
  actions: ActionRow[];
}

// For the side to move.
export interface Forecast {
  ownership: number[];
  score: number;
  lead: number | null;
}

export interface PlayInfo {
  game: Game;
  models: number[];
  // Of a bundled player null, and no models.
  newest: number | null;
  max_simulations: number;
  // Weakest first; none of a run.
  levels: Level[];
}

export interface Level {
  level: number;
  name: string;
  rating: number;
}

export interface BundledPlayer {
  id: string;
  name: string;
  // Of one whose files are damaged there is nothing else.
  trouble?: string;
  net?: string;
  games?: number;
  picture?: Picture | null;
  // Null if only the rows of its strength are known.
  sentence?: string | null;
  strength?: { what: string; value: number; low: number; high: number }[];
}

export interface KeptPly {
  value: number;
  simulations: number;
  policy: [number, number][];
  lead: number | null;
}

export interface KeptGame {
  game: Game;
  index: number;
  title: string;
  result: number | null;
  moves: number[];
  num_opening_plies: number;
  positions: Position[];
  plies: (KeptPly | null)[];
}

// What tengen report puts into its page: each answer that the page asks for, and more.
export interface Report {
  name: string;
  made: string;
  missing: string[];
  notes: string[];
  ratings: { simulations: number; rows: [string, number, number, number][] } | null;
  code: string;
}

interface Embedded {
  answers: Record<string, { error?: string }>;
  report: Report;
}

const embedded = JSON.parse(
  document.getElementById("tengen-data")?.textContent ?? "null",
) as Embedded | null;

// Null where a server answers.
export const report = embedded?.report ?? null;

export async function ask<T>(path: string, body?: unknown): Promise<T> {
  if (embedded) {
    const told = embedded.answers[path] ?? { error: "this page has no more of it" };
    if (told.error !== undefined) throw new Error(told.error);
    return told as T;
  }
  const reply = await send(path, body);
  return (await reply.json()) as T;
}

export async function send(
  path: string,
  body?: unknown,
  signal?: AbortSignal,
): Promise<Response> {
  const reply = await fetch(path, {
    method: body === undefined ? "GET" : "POST",
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
  }).catch((error: Error) => {
    if (signal?.aborted) throw error;
    throw new Error("the server does not answer");
  });
  if (reply.ok) return reply;
  const text = await reply.text();
  let message = text.trim() || `the server answers ${reply.status}`;
  try {
    message = (JSON.parse(text) as { error: string }).error;
  } catch {
    // A line of text is a message too.
  }
  throw new Error(message);
}

// Gives each JSON line of an answer as it comes.
export async function* sendForLines(
  path: string,
  body: unknown,
  signal: AbortSignal,
): AsyncGenerator<Record<string, unknown>> {
  const reply = await send(path, body, signal);
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop()!;
    for (const line of lines) if (line) yield JSON.parse(line);
  }
}

export function saveFile(name: string, data: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(data);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
