import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import { App } from "./app";
import "./style.css";

render(<App />, document.getElementById("app")!);

if ("serviceWorker" in navigator && navigator.onLine && location.protocol.startsWith("http")) {
  addEventListener("load", () => { navigator.serviceWorker.register("service.js").catch(() => undefined); });
}
