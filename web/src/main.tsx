import { Component, render, type ComponentChildren } from "preact";
import "uplot/dist/uPlot.min.css";
import { App } from "./app";
import "./style.css";
import { texts } from "./texts";

/** Shows a message in place of a page that cannot be drawn. */
class Guard extends Component<{ children: ComponentChildren }, { failed: boolean }> {
  state = { failed: false };

  componentDidCatch(error: unknown): void {
    console.error(error);
    this.setState({ failed: true });
  }

  render({ children }: { children: ComponentChildren }, { failed }: { failed: boolean }) {
    return failed ? <p class="fault" role="alert"><a href="./">{texts.broken}</a></p> : children;
  }
}

render(<Guard><App /></Guard>, document.getElementById("app")!);

if ("serviceWorker" in navigator && navigator.onLine && location.protocol.startsWith("http")) {
  // It loads every file once more: not while the first results are computed.
  const keep = () => { navigator.serviceWorker.register("service.js").catch(() => undefined); };
  addEventListener("load", () => { setTimeout(keep, 3000); });
}
