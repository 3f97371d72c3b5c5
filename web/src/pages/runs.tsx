import { useEffect } from "preact/hooks";
import type { RunSummary } from "../api";
import { Spark } from "../chart";
import { ago, clock, number, shown } from "../format";
import { useAsked } from "../hooks";
import { go, Link } from "../link";
import { State, Trouble, Waiting } from "../parts";
import { Players } from "./players";

export function RunsPage({ query }: { query: URLSearchParams }) {
  const { data: runs, error } = useAsked<RunSummary[]>("/api/runs", 2000);
  useEffect(() => {
    document.title = "tengen";
  }, []);
  if (!runs) return error ? <Trouble>{error}</Trouble> : <Waiting what="the runs" />;
  const known = runs.filter((run) => !run.error).map((run) => run.id);
  // The address keeps the ticks, so that the way back from the comparison has them.
  const ticked = (query.get("compare") ?? "").split(",").filter((id) => known.includes(id));
  const tick = (id: string, isOn: boolean) => {
    const next = isOn ? [...ticked, id] : ticked.filter((each) => each !== id);
    go(next.length > 0 ? `${location.pathname}?compare=${next.join()}` : location.pathname, "replace");
  };
  const live = runs.filter((run) => run.state && run.state !== "not running").length;
  return (
    <section>
      <header class="page-header">
        <h1>Runs</h1>
        <p class="soft" aria-live="polite">
          {runs.length === 0 ? "" : `${live} of ${runs.length} running`}
          {error && `, ${error}`}
        </p>
      </header>
      {runs.length === 0 && <Players title="Players to play against now" />}
      {runs.length === 0 && (
        <div class="empty">
          <p>No run yet. Start one, and it appears here by itself:</p>
          <pre>tengen train gomoku/9 --minutes 10</pre>
        </div>
      )}
      <ul class="cards">
        {sorted(runs).map((run) => (
          <RunCard
            key={run.id}
            run={run}
            isTicked={ticked.includes(run.id)}
            onTick={known.length > 1 ? (isOn) => tick(run.id, isOn) : undefined}
          />
        ))}
      </ul>
      {ticked.length > 0 && (
        <p class="compare-bar" role="status">
          {ticked.length > 1 ? (
            <Link class="button main-button" to={`/compare?runs=${ticked.join()}`}>
              Compare {ticked.length} runs
            </Link>
          ) : (
            "Tick another run to compare the two."
          )}
        </p>
      )}
    </section>
  );
}

// Those that run come first, then those that told of something last.
function sorted(runs: RunSummary[]): RunSummary[] {
  const isRunning = (run: RunSummary) => Number(run.state !== undefined && run.state !== "not running");
  return [...runs].sort((a, b) => isRunning(b) - isRunning(a) || (b.told_s ?? 0) - (a.told_s ?? 0));
}

interface CardProps {
  run: RunSummary;
  isTicked: boolean;
  onTick?: (isOn: boolean) => void;
}

function RunCard({ run, isTicked, onTick }: CardProps) {
  const base = `/runs/${run.id}`;
  if (run.error) {
    return (
      <li class="card">
        <h2>{run.name}</h2>
        <Trouble>{run.error}</Trouble>
      </li>
    );
  }
  const headline: Record<string, [string, string]> = {
    "charts/rating": ["rating", withError(run.rating, run.rating_error)],
    "charts/episodic_return": ["mean return", number(run.mean_return)],
    "losses/loss": ["loss", number(run.loss)],
  };
  const [word, value] = (run.headline && headline[run.headline]) || [run.in_environments ? "mean return" : "rating", "-"];
  const made = run.num_games ?? run.num_episodes;
  return (
    <li class="card">
      <div class="card-head">
        <h2>
          <Link to={base}>{run.name}</Link>
        </h2>
        <State state={run.state!} />
      </div>
      <p class="soft">
        {run.task}
        {run.latest_model !== null && `, model ${run.latest_model}`}
        {run.told_s && `, ${ago(run.told_s)}`}
      </p>
      <div class="card-curve">
        <div>
          <div class="figure">{value}</div>
          <div class="soft">{word}</div>
        </div>
        <Spark values={run.curve?.value ?? []} label={`${word} so far: ${value}`} />
      </div>
      <dl class="card-facts">
        <Fact name={run.in_environments ? "episodes" : "games"} value={number(made)} />
        <Fact name={run.in_environments ? "frames/s" : "rows/s"} value={number(run.rows_per_s)} />
        <Fact name="evaluations/s" value={number(run.evaluations_per_s)} />
        {run.state === "running" && run.eta_s !== null && run.eta_s !== undefined && (
          <Fact name="ETA" value={clock(run.eta_s)} />
        )}
      </dl>
      {run.verdict && <p class="verdict verdict-short">{shown(run.verdict)}</p>}
      <p class="card-links">
        <Link to={base}>Progress</Link>
        {!run.in_environments && <Link to={`${base}/games`}>Games</Link>}
        {!run.in_environments && run.latest_model !== null && <Link to={`${base}/play`}>Play</Link>}
        {onTick && (
          <label class="check">
            <input type="checkbox" checked={isTicked} onChange={(event) => onTick(event.currentTarget.checked)} />
            Compare<span class="hidden"> {run.name}</span>
          </label>
        )}
      </p>
    </li>
  );
}

function withError(value?: number | null, error?: number | null): string {
  if (value === null || value === undefined) return "-";
  return error ? `${Math.round(value)} \u00b1 ${Math.round(error)}` : String(Math.round(value));
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
