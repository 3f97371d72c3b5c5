// Addresses: the path says which page is shown; in a file, what follows the hash.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { report } from "./api";

const CHANGED = "tengen-path";

// The address in a report, whose only run is called so.
const START = "/runs/run";
let reported = START;

function here(): URL {
  if (!report) return new URL(location.href);
  // Any other hash names a place in the page.
  if (!location.hash || location.hash.startsWith("#/")) reported = location.hash.slice(1) || START;
  return new URL(reported, "http://report");
}

export function usePath(): URL {
  const [url, set] = useState(here);
  useEffect(() => {
    const changed = () => set(here());
    addEventListener("popstate", changed);
    addEventListener(CHANGED, changed);
    return () => {
      removeEventListener("popstate", changed);
      removeEventListener(CHANGED, changed);
    };
  }, []);
  return url;
}

export function go(to: string, how: "push" | "replace" = "push"): void {
  const path = report ? `#${to}` : to;
  if (how === "push") {
    history.pushState(null, "", path);
    scrollTo(0, 0);
    // The link may be gone with its page; readers go on where the new one begins.
    document.getElementById("main")?.focus({ preventScroll: true });
  } else {
    history.replaceState(null, "", path);
  }
  dispatchEvent(new Event(CHANGED));
}

interface Props {
  to: string;
  class?: string;
  isCurrent?: boolean;
  children: ComponentChildren;
}

export function Link({ to, isCurrent, children, ...rest }: Props) {
  return (
    <a
      {...rest}
      href={report ? `#${to}` : to}
      aria-current={isCurrent ? "page" : undefined}
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
        event.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}
