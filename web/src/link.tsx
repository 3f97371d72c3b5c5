// Addresses: the path says which page is shown.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

const CHANGED = "tengen-path";

export function usePath(): URL {
  const [url, set] = useState(() => new URL(location.href));
  useEffect(() => {
    const changed = () => set(new URL(location.href));
    addEventListener("popstate", changed);
    addEventListener(CHANGED, changed);
    return () => {
      removeEventListener("popstate", changed);
      removeEventListener(CHANGED, changed);
    };
  }, []);
  return url;
}

export function go(path: string, how: "push" | "replace" = "push"): void {
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
      href={to}
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
