// What the page and its workers say to each other.

export interface Request {
  do: string;
  [field: string]: unknown;
}

export type ToWorker =
  | { module: WebAssembly.Module }
  | { cancel: number }
  | { id: number; request: Request; file?: Uint8Array };

export type FromWorker =
  | { id: number; answer: unknown }
  | { id: number; error: string; trap: boolean }
  | { id: number; progress: number };
