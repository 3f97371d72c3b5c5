import { useEffect, useState } from "preact/hooks";
import { Chart } from "../chart";
import { number } from "../format";
import { useAsked } from "../hooks";
import { Link } from "../link";
import { State, Trouble, Waiting } from "../parts";
import type { CurveData } from "../api";

interface EnvironmentRun {
  id: string;
  name: string;
  seed: number | null;
  state: string;
  mean_return: number | null;
  num_episodes: number | null;
  curve: CurveData | null;
  films: string[];
}

const LOOK_MS = 10000;

export function EnvironmentsPage() {
  const { data, error } = useAsked<{ task: string; runs: EnvironmentRun[] }[]>("/api/environments", LOOK_MS);
  useEffect(() => {
    document.title = "Environments - tengen";
  }, []);
  if (!data) return error ? <Trouble>{error}</Trouble> : <Waiting what="the environments" />;
  return (
    <section>
      <h1>Environments</h1>
      {data.length === 0 && (
        <div class="empty">
          <p>No run of an environment yet.</p>
          <pre>tengen train CartPole-v1</pre>
        </div>
      )}
      {data.map(({ task, runs }) => (
        <Task key={task} task={task} runs={runs} />
      ))}
    </section>
  );
}

function Task({ task, runs }: { task: string; runs: EnvironmentRun[] }) {
  const lines = runs
    .filter((run) => run.curve && run.curve.step.length > 0)
    .map((run) => ({ label: `seed ${run.seed}, ${run.name}`, x: run.curve!.step, y: run.curve!.value }));
  const films = runs.flatMap((run) => run.films.map((film) => ({ run, film })));
  return (
    <section class="task">
      <h2>{task}</h2>
      {lines.length > 0 && (
        <Chart title="Return, mean of 100 episodes" xLabel="agent steps" lines={lines} height={260} />
      )}
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Run</th>
              <th scope="col">Seed</th>
              <th scope="col">State</th>
              <th scope="col">Mean return</th>
              <th scope="col">Episodes</th>
            </tr>
          </thead>
          <tbody>
            {runs.map((run) => (
              <tr key={run.id}>
                <td>
                  <Link to={`/runs/${run.id}`}>{run.name}</Link>
                </td>
                <td>{run.seed}</td>
                <td>
                  <State state={run.state} />
                </td>
                <td>{number(run.mean_return)}</td>
                <td>{number(run.num_episodes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {films.length === 0 ? (
        <p class="soft">
          No films yet; <code>tengen eval RUN --video RUN/films</code> makes some.
        </p>
      ) : (
        <div class="films">
          {films.map(({ run, film }) => (
            <figure key={`${run.id} ${film}`}>
              <Film path={`/api/runs/${encodeURIComponent(run.id)}/films/${encodeURIComponent(film)}`} name={film} />
              <figcaption>
                {run.name}, {film}
              </figcaption>
            </figure>
          ))}
        </div>
      )}
    </section>
  );
}

function Film({ path, name }: { path: string; name: string }) {
  // Asked for when it is wanted: a film is larger than the page.
  const [isOpen, setOpen] = useState(false);
  const label = `Film of an episode, ${name}`;
  if (!name.endsWith(".gif")) return <video src={path} controls playsInline preload="none" aria-label={label} />;
  // One that cannot be paused can be closed.
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{isOpen ? "Close" : "Watch"} {name}</summary>
      {isOpen && <img src={path} alt={label} />}
    </details>
  );
}
