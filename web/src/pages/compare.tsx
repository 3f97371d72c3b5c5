import { useEffect, useMemo } from "preact/hooks";
import { ask, type CurveData, type RunData } from "../api";
import { Chart, type Line } from "../chart";
import { clock, number, shown } from "../format";
import { useAsked, useKept } from "../hooks";
import { Link } from "../link";
import { State, Trouble, Waiting } from "../parts";

// The main curve of a run is the first that it has.
const METRICS = [
  { tag: "charts/rating", error: "charts/rating_error", title: "Rating, Elo", word: "rating" },
  { tag: "charts/episodic_return", title: "Return, mean of 100 episodes", word: "mean return" },
  { tag: "losses/loss", title: "Loss", word: "loss" },
];
const LOOK_MS = 5000;
const MOST_RUNS = 6; // as many as there are colours
const MOST_SETTINGS = 60;

type By = "made" | "hours";
type Answer = { id: string; error: string } | ({ id: string; error?: undefined } & RunData);
type Compared = RunData & { id: string };

interface Group {
  title: string;
  word: string;
  runs: Compared[];
  xLabel: string;
  lines: Line[];
}

export function ComparePage({ query }: { query: URLSearchParams }) {
  const all = [...new Set((query.get("runs") ?? "").split(",").filter(Boolean))];
  const ids = all.slice(0, MOST_RUNS);
  const { data } = useAsked<Answer[]>(ids.join(), LOOK_MS, () => Promise.all(ids.map(askFor)));
  const [by, setBy] = useKept<By>("tengen-compare-by", "made");
  useEffect(() => {
    document.title = "Compare runs - tengen";
  }, []);
  const runs = useMemo(() => (data ?? []).filter((each): each is Compared => each.error === undefined), [data]);
  const groups = useMemo(() => groupsOf(runs, by), [runs, by]);
  if (!data) return <Waiting what="the runs" />;
  const bare = runs.filter((run) => !groups.some((group) => group.runs.includes(run)));
  return (
    <article>
      <header class="run-header">
        <h1>Compare runs</h1>
        <Link to={`/?compare=${all.join()}`}>Choose other runs</Link>
      </header>
      {ids.length < 2 && <p>Choose two or more runs on the page Runs.</p>}
      {all.length > MOST_RUNS && (
        <Trouble>
          runs ({all.length}) must be at most {MOST_RUNS}; these are the first {MOST_RUNS}
        </Trouble>
      )}
      {data.map((each) => each.error !== undefined && <Trouble key={each.id}>{each.error}</Trouble>)}
      {groups.length > 0 && (
        <div class="chart-head">
          <h2>Curves</h2>
          <div class="choice" role="group" aria-label="Over what">
            {(["made", "hours"] as const).map((each) => (
              <button key={each} type="button" aria-pressed={by === each} onClick={() => setBy(each)}>
                over {each === "hours" ? "hours" : madeOf(runs)}
              </button>
            ))}
          </div>
        </div>
      )}
      <Limits groups={groups} bare={bare} />
      <div class="compared">
        {groups.map((group) => (
          <Chart key={group.title + group.xLabel} title={group.title} xLabel={group.xLabel} lines={group.lines} height={320} />
        ))}
      </div>
      {runs.length > 0 && <Facts runs={runs} groups={groups} />}
      {runs.length > 1 && <Settings runs={runs} />}
    </article>
  );
}

async function askFor(id: string): Promise<Answer> {
  try {
    return { id, ...(await ask<RunData>(`/api/runs/${encodeURIComponent(id)}`)) };
  } catch (e) {
    return { id, error: (e as Error).message };
  }
}

// Says which runs cannot be compared, and why.
function Limits({ groups, bare }: { groups: Group[]; bare: Compared[] }) {
  const names = (runs: Compared[]) => runs.map((run) => run.run.name).join(", ");
  return (
    <div class="limits">
      {groups.length > 1 && (
        <p>
          Runs with different metrics cannot be compared:{" "}
          {groups.map((group) => `${group.word} of ${names(group.runs)}`).join("; ")}.
        </p>
      )}
      {groups.map((group) => {
        const tasks = new Set(group.runs.map((run) => run.run.status.task));
        return (
          tasks.size > 1 && (
            <p key={group.title}>
              {[...tasks].join(", ")} are different tasks, so the values of {group.word} cannot be compared; compare the
              shapes of the curves.
            </p>
          )
        );
      })}
      {bare.length > 0 && <p>No curve yet: {names(bare)}.</p>}
    </div>
  );
}

function Facts({ runs, groups }: { runs: Compared[]; groups: Group[] }) {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            {["Run", "Task", "State", "Metric", "Latest", "Games or steps", "Time"].map((word) => (
              <th key={word} scope="col">{word}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => {
            const group = groups.find((each) => each.runs.includes(run));
            const line = group?.lines[group.runs.indexOf(run)];
            const [begun, end] = span(run);
            const steps = run.curves["charts/games"]?.value ?? run.curves["losses/loss"]?.step;
            return (
              <tr key={run.id}>
                <td>
                  <Link to={`/runs/${run.id}`}>{run.run.name}</Link>
                </td>
                <td>{run.run.status.task}</td>
                <td>
                  <State state={run.run.state} />
                </td>
                <td>{group?.word ?? "-"}</td>
                <td>{number(line?.y.at(-1))}</td>
                <td>{number(steps?.at(-1))}</td>
                <td>{end > begun ? clock(end - begun) : "-"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Settings({ runs }: { runs: Compared[] }) {
  const flat = runs.map((run) => flattened(run.config));
  const names = [...new Set(flat.flatMap((each) => Object.keys(each)))];
  const rows = names.filter((name) => new Set(flat.map((each) => each[name])).size > 1);
  if (rows.length === 0) return <p class="soft">All settings are the same.</p>;
  return (
    <details class="more" open={rows.length < 10}>
      <summary>
        {rows.length} setting{rows.length === 1 ? " differs" : "s differ"}
        {rows.length > MOST_SETTINGS && `; these are the first ${MOST_SETTINGS}`}
      </summary>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Setting</th>
              {runs.map((run) => (
                <th key={run.id} scope="col">{run.run.name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, MOST_SETTINGS).map((name) => (
              <tr key={name}>
                <td>{name}</td>
                {flat.map((each, i) => (
                  <td key={i}>{shown(each[name] ?? "-")}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

// The settings by their whole names, as agent.actor.search.cpuct.
function flattened(value: unknown, name = ""): Record<string, string> {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    return { [name]: typeof value === "string" ? value : JSON.stringify(value) };
  }
  const inner = Object.entries(value).map(([key, each]) => flattened(each, name ? `${name}.${key}` : key));
  return Object.assign({}, ...inner);
}

// One group for each metric. Games are counted in games, environments in steps.
function groupsOf(runs: Compared[], by: By): Group[] {
  const groups: Group[] = [];
  for (const { tag, title, word, error } of METRICS) {
    for (const inEnvironments of [false, true]) {
      const found = runs.filter(
        (run) =>
          run.in_environments === inEnvironments && METRICS.find((metric) => metric.tag in run.curves)?.tag === tag,
      );
      if (found.length === 0) continue;
      const unit = madeOf(found);
      // The chart of a single run has no legend.
      const only = found.length === 1 ? `, ${found[0].run.name}` : "";
      groups.push({
        title: title + only,
        word,
        runs: found,
        xLabel: by === "hours" ? "hours since the first turn" : unit,
        lines: found.map((run) => ({
          label: run.run.name,
          x: xOf(run, run.curves[tag], by, unit),
          y: run.curves[tag].value,
          error: error && run.curves[error] ? errorsOf(run.curves[tag], run.curves[error]) : undefined,
        })),
      });
    }
  }
  return groups;
}

function errorsOf(curve: CurveData, errors: CurveData): (number | null)[] {
  return curve.time_s.map((time) => errors.value[errors.time_s.indexOf(time)] ?? null);
}

// What a curve goes over, where it does not go over hours.
function madeOf(runs: Compared[]): string {
  const units = new Set(
    runs.map((run) => (run.in_environments ? "agent steps" : run.curves["charts/games"] ? "games" : "learner steps")),
  );
  return units.size === 1 ? [...units][0] : units.has("agent steps") ? "games or steps" : "learner steps";
}

function xOf(run: Compared, curve: CurveData, by: By, unit: string): number[] {
  if (by === "hours") return curve.time_s.map((time) => (time - span(run)[0]) / 3600);
  if (unit !== "games") return curve.step;
  return curve.time_s.map((time) => Math.round(valueAt(run.curves["charts/games"], time)));
}

// The value of a curve at a time, between its points on a straight line.
function valueAt({ time_s, value }: CurveData, time: number): number {
  const next = time_s.findIndex((each) => each >= time);
  if (next < 0) return value[value.length - 1];
  if (next === 0 || time_s[next] === time) return value[next];
  const share = (time - time_s[next - 1]) / (time_s[next] - time_s[next - 1]);
  return value[next - 1] + share * (value[next] - value[next - 1]);
}

// The times of a run's first and last event.
function span(run: Compared): [number, number] {
  const curves = Object.values(run.curves).filter((curve) => curve.time_s.length > 0);
  if (curves.length === 0) return [0, 0];
  return [Math.min(...curves.map((c) => c.time_s[0])), Math.max(...curves.map((c) => c.time_s.at(-1)!))];
}
