// A choice as the part of an address behind `#`: JSON, deflated, in the letters that addresses may have.
import { BadChoice, readChoice, usual, type Choice } from "./model";
import { texts } from "./texts";

const prefix = "#s=";
/** No address is longer, and none unpacks to more. */
const mostLetters = 60_000;
const mostBytes = 200_000;

async function pass(bytes: Uint8Array, through: ReadableWritablePair<Uint8Array, BufferSource>, most: number): Promise<Uint8Array> {
  const reader = new Blob([bytes as BlobPart]).stream().pipeThrough(through).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > most) {
      await reader.cancel();
      throw new BadChoice(texts.badLength);
    }
    parts.push(value);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Returns the choice as the end of an address: only what differs from the usual. */
export async function toLink(choice: Choice): Promise<string> {
  const changed = Object.entries(choice).filter(([field, value]) => JSON.stringify(value) !== JSON.stringify(usual[field as keyof Choice]));
  if (changed.length === 0) return "";
  const text = new TextEncoder().encode(JSON.stringify(Object.fromEntries(changed)));
  const packed = await pass(text, new CompressionStream("deflate-raw"), mostBytes);
  const base64 = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""));
  return prefix + base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Returns `true` if the end of an address should hold a choice. */
export const isLink = (hash: string) => hash.startsWith(prefix);

/** Reads the end of an address; the usual where it holds none. Throws [`BadChoice`] if it cannot be read. */
export async function fromLink(hash: string): Promise<Choice | undefined> {
  if (!isLink(hash)) return undefined;
  const letters = hash.slice(prefix.length);
  if (letters.length > mostLetters) throw new BadChoice(texts.badLength);
  let given: unknown;
  try {
    const base64 = letters.replaceAll("-", "+").replaceAll("_", "/");
    const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    given = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(await pass(packed, new DecompressionStream("deflate-raw"), mostBytes)));
  } catch (error) {
    if (error instanceof BadChoice) throw error;
    throw new BadChoice(texts.badLetters);
  }
  return readChoice(given);
}
