import { render } from "preact";
import { useEffect } from "preact/hooks";
import { report } from "./api";
import { useKept } from "./hooks";
import { Link, usePath } from "./link";
import { ComparePage } from "./pages/compare";
import { EnvironmentsPage } from "./pages/environments";
import { GamesPage } from "./pages/games";
import { PlayPage } from "./pages/play";
import { PlayersPage } from "./pages/players";
import { RecordPage } from "./pages/record";
import { ReportParts } from "./pages/report";
import { RunPage } from "./pages/run";
import { RunsPage } from "./pages/runs";
import { StorePage } from "./pages/store";

const THEMES = ["auto", "light", "dark"] as const;

function App() {
  const url = usePath();
  const [theme, setTheme] = useKept<(typeof THEMES)[number]>("tengen-theme", "auto");
  useEffect(() => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
  const [first, id, page] = url.pathname.split("/").slice(1).map(decoded);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  return (
    <>
      <a class="skip" href="#main">Skip to the page</a>
      <header class="top">
        {report || first === "record" ? <span class="brand">tengen</span> : <Pages first={first} page={page} />}
        <button class="theme" type="button" onClick={() => setTheme(next)}>
          Colours: {theme}<span class="hidden">; choose {next}</span>
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        <Page first={first} id={id} page={page} url={url} />
        {report && !page && <ReportParts report={report} />}
      </main>
    </>
  );
}

function Pages({ first, page }: { first?: string; page?: string }) {
  const isPlay = first === "play" || first === "players" || (first === "runs" && page === "play");
  const isRuns = !first || first === "compare" || (first === "runs" && !isPlay);
  return (
    <>
      <Link to="/" class="brand">
        <img src="/assets/icon.svg" alt="" width="26" height="26" />
        tengen
      </Link>
      <nav aria-label="Pages">
        <Link to="/play" isCurrent={isPlay}>Play</Link>
        <Link to="/" isCurrent={isRuns}>Runs</Link>
        <Link to="/environments" isCurrent={first === "environments"}>Environments</Link>
        <Link to="/store" isCurrent={first === "store"}>Store</Link>
      </nav>
    </>
  );
}

// A part of an address as it is meant; one that is no text names nothing.
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function Page({ first, id, page, url }: { first?: string; id?: string; page?: string; url: URL }) {
  if (!first || (first === "runs" && !id)) return <RunsPage query={url.searchParams} />;
  if (first === "compare") return <ComparePage query={url.searchParams} />;
  if (first === "play") return <PlayersPage />;
  if (first === "environments") return <EnvironmentsPage />;
  if (first === "store") return <StorePage />;
  if (first === "record") return <RecordPage />;
  if (first === "players" && id) return <PlayPage key={id} id={id} isBundled />;
  if (first === "runs" && id) {
    if (!page) return <RunPage key={id} id={id} />;
    if (page === "games") return <GamesPage key={id} id={id} query={url.searchParams} />;
    if (page === "play") return <PlayPage key={id} id={id} />;
  }
  return (
    <section>
      <h1>No such page</h1>
      <p>
        <Link to="/">All runs</Link>
      </p>
    </section>
  );
}

render(<App />, document.getElementById("app")!);
