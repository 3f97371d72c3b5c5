// What a report has of a run beside its page: how it was made, and what was rated.

import type { Report } from "../api";
import { number, shown } from "../format";
import { Trouble } from "../parts";

export function ReportParts({ report }: { report: Report }) {
  return (
    <>
      {report.missing.map((line) => (
        <Trouble key={line}>Missing. {line}</Trouble>
      ))}
      {report.notes.map((line) => (
        <p key={line} class="soft">
          {line}
        </p>
      ))}
      {report.ratings && <Ratings ratings={report.ratings} />}
      {report.code && (
        <section>
          <h2>Code and machine</h2>
          <pre class="config">{report.code}</pre>
        </section>
      )}
      <footer>
        <p class="soft">{report.made}</p>
      </footer>
    </>
  );
}

function Ratings({ ratings }: { ratings: NonNullable<Report["ratings"]> }) {
  return (
    <section>
      <h2>Ratings</h2>
      <div class="scroll">
        <table>
          <caption>Elo of models at {ratings.simulations} simulations a move; random play is 0</caption>
          <thead>
            <tr>
              <th scope="col">Model</th>
              <th scope="col">Elo</th>
              <th scope="col">Games</th>
            </tr>
          </thead>
          <tbody>
            {ratings.rows.map(([model, elo, error, games]) => (
              <tr key={model}>
                <td>{model}</td>
                <td>{shown(`${Math.round(elo)} +- ${Math.round(error)}`)}</td>
                <td>{number(games)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
