/** The answer of the simulator to `registry`, as JSON: vite.config.js asks for it. */
declare module "virtual:registry" {
  const text: string;
  export default text;
}
