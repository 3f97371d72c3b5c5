import { useEffect, useState } from "preact/hooks";
import { ask, report } from "./api";

export interface Asked<T> {
  data: T | null;
  error: string | null;
}

// Asks for JSON once, whenever the path changes, and again and again while it is seen. If
// a later answer is an error, the last data stay beside it. Another way to ask may be
// given; it gets the path.
export function useAsked<T>(
  path: string | null,
  every_ms = 0,
  load: (path: string) => Promise<T> = ask,
): Asked<T> {
  const [state, set] = useState<(Asked<T> & { path: string }) | null>(null);
  useEffect(() => {
    if (path === null) return;
    let isWanted = true;
    let timer = 0;
    const wait = () => {
      if (isWanted && every_ms > 0 && !report) timer = window.setTimeout(again, every_ms);
    };
    const again = () => (document.hidden ? wait() : look());
    const look = () => {
      load(path)
        .then(
          (data) => isWanted && set({ path, data, error: null }),
          ({ message: error }: Error) =>
            isWanted && set((old) => ({ path, data: old?.path === path ? old.data : null, error })),
        )
        .finally(wait);
    };
    look();
    return () => {
      isWanted = false;
      window.clearTimeout(timer);
    };
  }, [path, every_ms]);
  const current = state !== null && state.path === path ? state : null;
  return { data: current?.data ?? null, error: current?.error ?? null };
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
