import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, type Point, report, type RunData, type RunState } from "../api";
import { Chart, type Line } from "../chart";
import { bytes, shown } from "../format";
import { useKept, useTold } from "../hooks";
import { Link } from "../link";
import { nameOf, RunHeader, State, Trouble, Waiting } from "../parts";

interface Curve {
  step: number[];
  time_s: number[];
  value: number[];
}
type Curves = Record<string, Curve>;

// What a chart shows, of what there is: title, and its curves with their names.
const CHARTS: { title: string; tags: [string, string][]; isShare?: boolean }[] = [
  { title: "Rating, Elo", tags: [["charts/rating", "rating"]] },
  { title: "Return of an episode", tags: [["charts/episodic_return", "mean of 100"]] },
  {
    title: "Loss",
    tags: [
      ["losses/loss", "total"],
      ["losses/policy_loss", "policy"],
      ["losses/value_loss", "value"],
      ["losses/td_loss", "TD"],
    ],
  },
  {
    title: "Loss on games kept from learning",
    tags: [
      ["validation/loss", "total"],
      ["validation/policy_loss", "policy"],
      ["validation/value_loss", "value"],
    ],
  },
  {
    title: "Accuracy",
    isShare: true,
    tags: [
      ["charts/policy_accuracy", "the search's move"],
      ["charts/value_accuracy", "the game's result"],
      ["validation/policy_accuracy", "move, kept games"],
      ["validation/value_accuracy", "result, kept games"],
    ],
  },
  { title: "Gate, Elo over the model before", tags: [["charts/gate_elo", "Elo"]] },
  { title: "Rows a second", tags: [["charts/SPS", "rows"]] },
  { title: "Evaluations a second", tags: [["charts/evaluations_per_s", "evaluations"]] },
  {
    title: "Waits and shares of time",
    isShare: true,
    tags: [
      ["charts/simulation_share", "environments step"],
      ["charts/answer_wait_share", "actors wait for answers"],
      ["charts/room_wait_share", "actors wait for room"],
      ["charts/inference_wait_share", "inference waits"],
      ["charts/batch_fill", "batches full"],
      ["charts/cache_hit_share", "cache hits"],
    ],
  },
  { title: "Lag of the acting model, learner steps", tags: [["charts/lag_steps", "steps"]] },
  {
    title: "Length",
    tags: [
      ["charts/game_length", "plies of a game"],
      ["charts/episodic_length", "steps of an episode"],
    ],
  },
  { title: "Learning rate", tags: [["charts/learning_rate", "rate"]] },
];
const ERRORS: Record<string, string> = { "charts/rating": "charts/rating_error" };
const COUNTS = ["charts/games", "charts/episodes", "charts/rows", "charts/learner_steps"];

export function RunPage({ id }: { id: string }) {
  const path = `/api/runs/${encodeURIComponent(id)}`;
  const [run, setRun] = useState<RunState | null>(null);
  const [curves, setCurves] = useState<Curves>({});
  const [inEnvironments, setInEnvironments] = useState(false);
  const [config, setConfig] = useState<unknown>(null);
  const [error, setError] = useState<string | null>(null);
  const [by, setBy] = useKept<"steps" | "hours">("tengen-by", "steps");
  const place = useRef<{ epoch: number; num_points: number } | null>(null);
  const [isRead, setRead] = useState(0);

  function read() {
    ask<RunData>(path).then(
      (data) => {
        place.current = data;
        setRun(data.run);
        setInEnvironments(data.in_environments);
        setConfig(data.config);
        setCurves(unpacked(data));
        setError(null);
        setRead((n) => n + 1);
      },
      (e: Error) => setError(e.message),
    );
  }
  useEffect(read, [path]);
  useEffect(() => {
    if (run) document.title = `${run.name} - tengen`;
  }, [run?.name]);
  const isHeard = useTold(
    isRead ? () => `${path}/changes?epoch=${place.current!.epoch}&num_points=${place.current!.num_points}` : null,
    `${path} ${isRead}`,
    {
      run: setRun,
      again: read,
      failure: ({ error }: { error: string }) => setError(error),
      points: (points: Point[]) => {
        place.current!.num_points += points.length;
        setCurves((old) => points.reduce(added, old));
      },
    },
  );

  const charts = useMemo(() => chartsOf(curves, by, inEnvironments), [curves, by, inEnvironments]);
  if (!run && error) {
    return (
      <section>
        <h1>{nameOf(id)}</h1>
        <Trouble>{error}</Trouble>
        {!report && <Link to="/">All runs</Link>}
      </section>
    );
  }
  if (!run) return <Waiting what="the run" />;
  const { status } = run;
  return (
    <article>
      <RunHeader id={id} name={run.name} page="" isGame={!inEnvironments} />
      {error && <Trouble>{error}</Trouble>}
      <div class="run-now">
        <p class="run-state" aria-live="polite">
          <State state={run.state} /> <span class="soft">{status.task}</span>
          {!isHeard && <span class="soft"> (the server does not answer)</span>}
        </p>
        {status.progress?.verdict && <p class="verdict">{shown(status.progress.verdict)}</p>}
        <dl class="facts">
          {run.facts.map(([name, text]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{shown(text)}</dd>
            </div>
          ))}
          <div>
            <dt>models</dt>
            <dd>{status.num_models}</dd>
          </div>
          <div>
            <dt>experience</dt>
            <dd>{bytes(status.experience_bytes)}</dd>
          </div>
          {Object.keys(run.memory).length > 0 && (
            <div>
              <dt>memory</dt>
              <dd>{bytes(Object.values(run.memory).reduce((a, b) => a + b))}</dd>
            </div>
          )}
          <div>
            <dt>disk free</dt>
            <dd>{bytes(status.free_bytes)}</dd>
          </div>
        </dl>
      </div>
      <div class="chart-head">
        <h2>Curves</h2>
        <div class="choice" role="group" aria-label="Over what">
          {(["steps", "hours"] as const).map((word) => (
            <button key={word} type="button" aria-pressed={by === word} onClick={() => setBy(word)}>
              over {word}
            </button>
          ))}
        </div>
      </div>
      {charts.main.length === 0 && <p class="soft">No turn of learning yet; curves begin with the first one.</p>}
      <div class="charts">
        {charts.main.map((chart) => (
          <Chart key={chart.title} {...chart} />
        ))}
      </div>
      {charts.more.length > 0 && (
        <details class="more">
          <summary>{charts.more.length} more curves</summary>
          <div class="charts">
            {charts.more.map((chart) => (
              <Chart key={chart.title} {...chart} />
            ))}
          </div>
        </details>
      )}
      <Where run={run} />
      <details class="more">
        <summary>Config</summary>
        <pre class="config">{JSON.stringify(config, null, 2)}</pre>
      </details>
    </article>
  );
}

function Where({ run }: { run: RunState }) {
  const { status } = run;
  const rows: [string, string, string, string][] = [];
  const memory = (process: string | null) => {
    const found = process === null ? undefined : run.memory[process];
    return found === undefined ? "" : bytes(found);
  };
  if (status.running) rows.push(["train", status.running, run.state, memory(status.running)]);
  for (const one of status.places) rows.push([one.roles.join(", "), `${one.name} on ${one.host}`, `${one.num_threads} threads`, ""]);
  for (const one of status.roles) rows.push([one.role, one.process ?? "nobody", one.state, memory(one.process)]);
  if (rows.length === 0 && !status.gate && status.lost.length === 0) return null;
  return (
    <section>
      <h2>Roles</h2>
      {rows.length > 0 && (
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">Role</th>
                <th scope="col">Process</th>
                <th scope="col">Does</th>
                <th scope="col">Memory</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row, i) => (
                <tr key={i}>
                  {row.map((cell, j) => (
                    <td key={j}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {status.ratio && <p class="verdict">{shown(status.ratio)}</p>}
      {status.gate && (
        <p>
          Candidate {status.gate.candidate}: {shown(status.gate.summary)}
        </p>
      )}
      {status.lost.map((line) => (
        <Trouble key={line}>{line}</Trouble>
      ))}
    </section>
  );
}

function unpacked(data: RunData): Curves {
  const found: Curves = {};
  for (const [tag, { axis, value }] of Object.entries(data.curves)) {
    found[tag] = { ...data.axes[axis], value };
  }
  return found;
}

function added(old: Curves, point: Point): Curves {
  const next = { ...old };
  for (const [tag, value] of Object.entries(point.values)) {
    const curve = next[tag] ?? { step: [], time_s: [], value: [] };
    next[tag] = {
      step: [...curve.step, point.step],
      time_s: [...curve.time_s, point.time_s],
      value: [...curve.value, value],
    };
  }
  return next;
}

function chartsOf(curves: Curves, by: "steps" | "hours", inEnvironments: boolean) {
  const times = Object.values(curves).map((curve) => curve.time_s[0]);
  const begun = Math.min(...times);
  const xLabel = by === "hours" ? "hours since the first turn" : inEnvironments ? "agent steps" : "learner steps";
  const used = new Set<string>([...COUNTS, ...Object.values(ERRORS)]);
  const line = (tag: string, label: string): Line => {
    const curve = curves[tag];
    const errors = curves[ERRORS[tag]];
    return {
      label,
      x: by === "steps" ? curve.step : curve.time_s.map((t) => (t - begun) / 3600),
      y: curve.value,
      error: errors && curve.time_s.map((t) => errors.value[errors.time_s.indexOf(t)] ?? null),
    };
  };
  const main = [];
  for (const { title, tags, isShare } of CHARTS) {
    const present = tags.filter(([tag]) => tag in curves);
    present.forEach(([tag]) => used.add(tag));
    if (present.length === 0) continue;
    main.push({ title, isShare, xLabel, lines: present.map(([tag, label]) => line(tag, label)) });
  }
  const rest = Object.keys(curves).filter((tag) => !used.has(tag));
  const more = rest.map((tag) => ({ title: tag.replace("/", ", "), xLabel, lines: [line(tag, tag.split("/")[1])] }));
  return { main, more };
}
