// Small things that several pages show.

import type { ComponentChildren } from "preact";
import { report } from "./api";
import { chance, percent } from "./format";
import { Link } from "./link";

export function State({ state }: { state: string }) {
  const name = state.replace(" ", "-");
  return <span class={`state state-${name}`}>{state}</span>;
}

export function Trouble({ children }: { children: ComponentChildren }) {
  return (
    <p class="trouble" role="alert">
      {children}
    </p>
  );
}

interface ReadyProps {
  isReady: boolean;
  onClick: () => void;
  children: ComponentChildren;
  [name: `aria-${string}`]: string;
}

// A button that keeps the focus while it has nothing to do: one that is disabled loses
// it, and who plays by the keyboard would begin at the top of the page again.
export function ReadyButton({ isReady, onClick, children, ...rest }: ReadyProps) {
  return (
    <button
      {...rest}
      type="button"
      class={isReady ? "" : "unready"}
      aria-disabled={!isReady}
      onClick={() => isReady && onClick()}
    >
      {children}
    </button>
  );
}

export function Waiting({ what }: { what: string }) {
  return (
    <p class="waiting" role="status">
      Reading {what} ...
    </p>
  );
}

// A run's name for people, where nobody has asked for more than its address.
export function nameOf(id: string): string {
  return report?.name ?? id.replaceAll("~", "/");
}

// A value of the first of two sides, as a bar that both share.
export function ValueBar({ value, names }: { value: number; names: [string, string] }) {
  const first = chance(value);
  return (
    <div class="value" role="img" aria-label={`${names[0]} ${percent(first)}, ${names[1]} ${percent(1 - first)}`}>
      <span>{names[0]} {percent(first)}</span>
      <span class="value-bar" aria-hidden="true">
        <span style={{ width: `${100 * first}%` }} />
      </span>
      <span>{percent(1 - first)} {names[1]}</span>
    </div>
  );
}

interface HeaderProps {
  id: string;
  name: string;
  page: "" | "games" | "play";
  isGame?: boolean;
}

export function RunHeader({ id, name, page, isGame = true }: HeaderProps) {
  const base = `/runs/${id}`;
  return (
    <header class="run-header">
      <h1>{name}</h1>
      <nav aria-label="This run">
        <Link to={base} isCurrent={page === ""}>Progress</Link>
        {isGame && <Link to={`${base}/games`} isCurrent={page === "games"}>Games</Link>}
        {isGame && !report && <Link to={`${base}/play`} isCurrent={page === "play"}>Play</Link>}
      </nav>
    </header>
  );
}
