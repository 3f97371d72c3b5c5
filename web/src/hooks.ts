import { useEffect, useRef, useState } from "preact/hooks";
import { ask, report } from "./api";

export interface Asked<T> {
  data: T | null;
  error: string | null;
}

// Asks for JSON once, whenever the path changes, and now and then while it is seen.
export function useAsked<T>(path: string | null, every_ms = 0): Asked<T> {
  const [state, set] = useState<{ path: string; data?: T; error?: string } | null>(null);
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (path === null) return;
    let isWanted = true;
    ask<T>(path).then(
      (data) => isWanted && set({ path, data }),
      (error: Error) => isWanted && set({ path, error: error.message }),
    );
    return () => {
      isWanted = false;
    };
  }, [path, count]);
  useEffect(() => {
    if (every_ms === 0) return;
    const timer = setInterval(() => !document.hidden && setCount((c) => c + 1), every_ms);
    return () => clearInterval(timer);
  }, [every_ms]);
  const current = state !== null && state.path === path ? state : null;
  return {
    data: current?.data ?? null,
    error: current?.error ?? null,
  };
}

export type Handlers = Record<string, (content: never) => void>;

// Hears what the server tells, while the page is seen: a hidden one costs nothing.
// ``path`` is asked again at each connection, for what the page has then.
export function useTold(
  path: (() => string) | null,
  key: string,
  handlers: Handlers,
): boolean {
  const [isHeard, setHeard] = useState(true);
  const latest = useRef({ path, handlers });
  latest.current = { path, handlers };
  useEffect(() => {
    if (path === null || report) return;
    let source: EventSource | null = null;
    let timer = 0;
    const open = () => {
      close();
      if (document.hidden) return;
      source = new EventSource(latest.current.path!());
      source.onopen = () => setHeard(true);
      source.onerror = () => {
        // Opened anew, as the address says what the page has.
        setHeard(false);
        close();
        timer = window.setTimeout(open, 3000);
      };
      for (const name of Object.keys(latest.current.handlers)) {
        source.addEventListener(name, (event) => {
          const handler = latest.current.handlers[name] as (content: unknown) => void;
          handler(JSON.parse((event as MessageEvent<string>).data));
        });
      }
    };
    const close = () => {
      window.clearTimeout(timer);
      source?.close();
      source = null;
    };
    open();
    document.addEventListener("visibilitychange", open);
    return () => {
      document.removeEventListener("visibilitychange", open);
      close();
    };
  }, [path === null, key]);
  return isHeard;
}

// A value that outlives the page, in this browser.
export function useKept<T>(name: string, initial: T): [T, (value: T) => void] {
  const [value, set] = useState<T>(() => {
    try {
      const text = localStorage.getItem(name);
      return text === null ? initial : (JSON.parse(text) as T);
    } catch {
      return initial;
    }
  });
  return [
    value,
    (next) => {
      set(next);
      try {
        localStorage.setItem(name, JSON.stringify(next));
      } catch {
        // A browser may keep nothing.
      }
    },
  ];
}
