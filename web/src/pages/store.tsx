import { useEffect } from "preact/hooks";
import { ago, bytes, number, percent } from "../format";
import { useAsked } from "../hooks";
import { Link } from "../link";
import { Trouble, Waiting } from "../parts";

interface Table {
  name: string;
  num_items: number;
  num_bytes: number;
  inserts_per_s: number;
  samples_per_s: number;
  hit_rate: number | null;
  waits: string;
  num_damaged: number;
}

interface StoreOfRun {
  id: string;
  name: string;
  experience_bytes: number;
  free_bytes: number;
  learned: Record<string, number> | null;
  served: { time_s: number; tables: Table[]; trouble?: string; sessions?: string[] } | null;
}

const LOOK_MS = 5000;

export function StorePage() {
  const { data, error } = useAsked<StoreOfRun[]>("/api/stores", LOOK_MS);
  useEffect(() => {
    document.title = "Store - tengen";
  }, []);
  if (!data) return error ? <Trouble>{error}</Trouble> : <Waiting what="the stores" />;
  return (
    <section>
      <h1>Store</h1>
      <p class="soft">What each run has made, and what its learner draws from.</p>
      {data.length === 0 && <p>No run yet, and so no store.</p>}
      {data.map((run) => (
        <section key={run.id} class="task">
          <h2>
            <Link to={`/runs/${run.id}`}>{run.name}</Link>
          </h2>
          <dl class="facts">
            <div>
              <dt>on disk</dt>
              <dd>{bytes(run.experience_bytes)}</dd>
            </div>
            <div>
              <dt>disk free</dt>
              <dd>{bytes(run.free_bytes)}</dd>
            </div>
            {Object.entries(run.learned ?? {}).map(([name, value]) => (
              <div key={name}>
                <dt>{name.replace(/^num_/, "").replace(/_/g, " ")}</dt>
                <dd>{name.endsWith("bytes") ? bytes(value) : number(value)}</dd>
              </div>
            ))}
          </dl>
          {run.served && <Served served={run.served} />}
        </section>
      ))}
    </section>
  );
}

function Served({ served }: { served: NonNullable<StoreOfRun["served"]> }) {
  return (
    <div class="scroll">
      <table>
        <caption>Tables, {ago(served.time_s)}</caption>
        <thead>
          <tr>
            {["Table", "Items", "Size", "Inserts/s", "Samples/s", "From memory", "Waits"].map((word) => (
              <th key={word} scope="col">{word}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {served.tables.map((table) => (
            <tr key={table.name}>
              <td>{table.name}</td>
              <td>{number(table.num_items)}</td>
              <td>{bytes(table.num_bytes)}</td>
              <td>{number(table.inserts_per_s)}</td>
              <td>{number(table.samples_per_s)}</td>
              <td>{table.hit_rate === null ? "-" : percent(table.hit_rate)}</td>
              <td>{table.waits || "-"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {served.trouble && <Trouble>{served.trouble}</Trouble>}
    </div>
  );
}
