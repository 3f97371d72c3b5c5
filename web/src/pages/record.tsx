import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask } from "../api";
import { useAsked } from "../hooks";
import { ReadyButton, Trouble, Waiting } from "../parts";

interface View {
  at: number;
  num_recorded: number;
  num_left: number;
  num_steps: number;
  total: number;
  legal: boolean[];
  has_ended: boolean;
  width: number;
  pixels: string;
}

interface Recording extends View {
  task: string;
  frames_per_s: number;
  names: string[];
  keys: [(string | number)[], number][];
}

// Some keys that are held together, and their action.
type Binding = [string[], number];

const ARROWS = ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"];
// The codes of the arrows in pygame 2, and in pygame 1.
const CODES = [
  [1073741903, 1073741904, 1073741905, 1073741906],
  [275, 276, 274, 273],
];
const WORDS: Record<string, string> = {
  LEFT: "ArrowLeft",
  RIGHT: "ArrowRight",
  UP: "ArrowUp",
  FORWARD: "ArrowUp",
  DOWN: "ArrowDown",
  FIRE: " ",
  TOGGLE: " ",
};
const NOOP = "NOOP";
const LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz";
const SHOWN: Record<string, string> = {
  " ": "space",
  ArrowLeft: "\u2190",
  ArrowUp: "\u2191",
  ArrowRight: "\u2192",
  ArrowDown: "\u2193",
};

// As in KeyboardEvent.key; a letter is small, with or without Shift.
function keyName(key: string | number): string {
  if (typeof key === "number") {
    const arrow = ARROWS.find((_, place) => CODES.some((codes) => codes[place] === key));
    return arrow ?? keyName(key === 13 ? "Enter" : String.fromCharCode(key));
  }
  return key.length === 1 ? key.toLowerCase() : key;
}

function bindingsOf({ names, keys }: Recording): Binding[] {
  const found: Binding[] = keys.map(([held, choice]) => [held.map(keyName), choice]);
  if (found.some(([held]) => held.length > 0)) return found;
  // Arrows for names such as UPRIGHTFIRE, otherwise a letter of the name.
  const used = () => new Set(found.map(([held]) => held.join()));
  names.forEach((name, choice) => {
    if (name.toUpperCase() === NOOP) return;
    const words = name.toUpperCase().match(/LEFT|RIGHT|UP|FORWARD|DOWN|FIRE|TOGGLE/g) ?? [];
    let held = words.map((word) => WORDS[word]);
    if (words.join("") !== name.toUpperCase() || used().has(held.join())) {
      held = [...name.toLowerCase(), ...LETTERS]
        .filter((letter) => LETTERS.includes(letter) && !used().has(letter))
        .slice(0, 1);
    }
    if (held.length > 0) found.push([held, choice]);
  });
  return found;
}

// The action of a person who does nothing; null if the environment waits for keys.
function idleOf({ names }: Recording, bindings: Binding[]): number | null {
  const found = bindings.find(([held]) => held.length === 0)?.[1];
  const place = names.findIndex((name) => name.toUpperCase() === NOOP);
  return found ?? (place < 0 ? null : place);
}

// The action of the most keys of those that are pressed; of several, that of the last key.
function choiceOf(bindings: Binding[], pressed: string[], last?: string): number | null {
  let best: number | null = null;
  let most = 0;
  for (const [held, choice] of bindings) {
    if (!held.every((key) => pressed.includes(key))) continue;
    if (last !== undefined && !held.includes(last)) continue;
    const newest = Math.max(-1, ...held.map((key) => pressed.lastIndexOf(key)));
    const score = held.length * 1000 + newest;
    if (held.length > 0 && score >= most) [best, most] = [choice, score];
  }
  return best;
}

export function RecordPage() {
  const { data, error } = useAsked<Recording>("/api/recording");
  return (
    <article>
      <header class="run-header">
        <h1>{data?.task ?? "Recording"}</h1>
      </header>
      {error && <Trouble>{error}</Trouble>}
      {!data && !error && <Waiting what="the environment" />}
      {data && <Player recording={data} />}
    </article>
  );
}

function Player({ recording }: { recording: Recording }) {
  const [view, setView] = useState<View>(recording);
  const [bindings] = useState(() => bindingsOf(recording));
  const [idle, setIdle] = useState(() => idleOf(recording, bindings));
  const [rate, setRate] = useState(recording.frames_per_s);
  const [isRunning, setRunning] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef<View>(recording);
  const queue = useRef(Promise.resolve());
  const isBusy = useRef(false);
  const pressed = useRef<string[]>([]);
  const released = useRef<string[]>([]);
  const isOver = view.num_left === 0;

  useEffect(() => {
    document.title = `Play ${recording.task} - tengen`;
  }, []);
  useEffect(() => draw(canvas.current!, view), [view]);

  // Stops the time, and forgets the keys: none acts in the next episode or mode.
  function stop(): void {
    pressed.current = [];
    released.current = [];
    setRunning(false);
  }

  // One change at a time, each of the state that the one before has led to.
  function change(what: "step" | "next" | "discard", choice?: number): Promise<void> {
    if (what !== "step") stop();
    queue.current = queue.current.then(async () => {
      const { at, has_ended, legal } = latest.current;
      if (what === "step" && (has_ended || !legal[choice!])) return;
      isBusy.current = true;
      try {
        latest.current = await ask<View>(`/api/recording/${what}`, { at, choice });
        setView(latest.current);
        setError(null);
        if (latest.current.has_ended) setRunning(false);
      } catch (e) {
        setError((e as Error).message);
        setRunning(false);
      } finally {
        isBusy.current = false;
      }
    });
    return queue.current;
  }

  // Ends in the same task as the rendering, so that no step follows a change of episode.
  useLayoutEffect(() => {
    if (!isRunning || idle === null) return;
    let isWanted = true;
    const run = async () => {
      while (isWanted) {
        const begun = performance.now();
        const { legal } = latest.current;
        const choice = choiceOf(bindings, pressed.current) ?? idle;
        // A key that was pressed and released since the last step has had its step now.
        pressed.current = pressed.current.filter((key) => !released.current.includes(key));
        released.current = [];
        await change("step", legal[choice] ? choice : legal[idle] ? idle : legal.indexOf(true));
        const left = 1000 / rate - (performance.now() - begun);
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, left)));
      }
    };
    void run();
    return () => {
      isWanted = false;
      pressed.current = pressed.current.filter((key) => !released.current.includes(key));
      released.current = [];
    };
  }, [isRunning, idle, rate]);

  // In the same task as the rendering, so that no key comes between.
  useLayoutEffect(() => {
    const known = new Set(bindings.flatMap(([held]) => held));
    const isOwn = (event: KeyboardEvent) => {
      const tag = (event.target as HTMLElement).tagName;
      const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
      return known.has(keyName(event.key)) && !hasModifier && !["INPUT", "SELECT"].includes(tag);
    };
    const down = (event: KeyboardEvent) => {
      if (!isOwn(event)) return;
      event.preventDefault();
      const key = keyName(event.key);
      released.current = released.current.filter((one) => one !== key);
      if (!event.repeat) pressed.current = [...pressed.current.filter((one) => one !== key), key];
      if (latest.current.has_ended) return;
      if (idle !== null) {
        if (!event.repeat) setRunning(true);
        return;
      }
      const choice = choiceOf(bindings, pressed.current, key);
      if (choice !== null && !(event.repeat && isBusy.current)) void change("step", choice);
    };
    const up = (event: KeyboardEvent) => {
      const key = keyName(event.key);
      if (isOwn(event)) event.preventDefault();
      if (isRunning) released.current.push(key);
      else pressed.current = pressed.current.filter((one) => one !== key);
    };
    addEventListener("keydown", down);
    addEventListener("keyup", up);
    addEventListener("blur", stop);
    return () => {
      removeEventListener("keydown", down);
      removeEventListener("keyup", up);
      removeEventListener("blur", stop);
    };
  }, [idle, isRunning]);

  const total = Number(view.total.toPrecision(6));
  return (
    <div class="play">
      <div class="play-board">
        <canvas class="frame" ref={canvas} role="img" aria-label="The frame of the environment" />
        <p class={view.has_ended ? "turn turn-over" : "turn"} role="status">
          {isOver
            ? `All ${view.num_recorded} episodes are recorded.`
            : `Episode ${view.num_recorded + 1} of ${view.num_recorded + view.num_left}, step ${view.num_steps}, return ${total}` +
              (view.has_ended ? ": it has ended." : isRunning || idle === null ? "." : ": press a key to play.")}
        </p>
        {error && <Trouble>{error}</Trouble>}
        <div class="buttons">
          {idle !== null && (
            <ReadyButton isReady={!view.has_ended && !isOver} onClick={() => setRunning(!isRunning)}>
              {isRunning ? "Pause" : "Play"}
            </ReadyButton>
          )}
          <ReadyButton isReady={view.has_ended} onClick={() => void change("next")}>
            Record, next episode
          </ReadyButton>
          <ReadyButton isReady={view.num_steps > 0 && !isOver} onClick={() => void change("discard")}>
            Discard
          </ReadyButton>
        </div>
      </div>
      <div class="play-side">
        <fieldset>
          <legend>Time</legend>
          <label>
            While no key is pressed
            <select
              value={idle === null ? "" : String(idle)}
              onChange={({ currentTarget: { value } }) => {
                stop();
                setIdle(value === "" ? null : Number(value));
              }}
            >
              <option value="">wait</option>
              {recording.names.map((name, choice) => (
                <option key={choice} value={String(choice)}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          {idle !== null && (
            <label>
              Steps per second
              <input
                type="number"
                min="1"
                max="60"
                value={rate}
                onChange={({ currentTarget: { value } }) => setRate(Math.min(60, Math.max(1, Number(value) || 1)))}
              />
            </label>
          )}
        </fieldset>
        <table class="actions">
          <thead>
            <tr>
              <th scope="col">Action</th>
              <th scope="col">Key</th>
            </tr>
          </thead>
          <tbody>
            {recording.names.map((name, choice) => (
              <tr key={choice}>
                <td>{name}</td>
                <td>
                  {bindings
                    .filter(([held, one]) => one === choice && held.length > 0)
                    .map(([held]) => held.map((key) => SHOWN[key] ?? key).join(" + "))
                    .join(", ")}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function draw(canvas: HTMLCanvasElement, { pixels, width }: View): void {
  const bytes = atob(pixels);
  const image = new ImageData(width, bytes.length / 3 / width);
  for (let from = 0, to = 0; from < bytes.length; to++) {
    image.data[to] = to % 4 === 3 ? 255 : bytes.charCodeAt(from++);
  }
  // The last pixel ends with its colour.
  image.data[image.data.length - 1] = 255;
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext("2d")!.putImageData(image, 0, 0);
}
