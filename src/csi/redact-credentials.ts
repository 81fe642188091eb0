// Removes credentials from messages of a driver. Some drivers repeat them in their errors, and those errors become
// events and conditions. Secret fields of whole CSI messages: redact.ts.

const STRIPPED = '***stripped***'
/** Shorter values are words such as "no" or "1": not a secret, and without them no sentence would be readable. */
const SECRET_CHARACTERS_MIN = 4

/** Replaces each value, also where the text contains it encoded or contains only one of its lines. */
export function redactCredentials(text: string, credentials: Readonly<Record<string, string>>): string {
  const forms = new Set(Object.values(credentials).flatMap(formsOf))
  // Longest first, because a value may contain another one.
  const ordered = [...forms].filter((form) => form.length >= SECRET_CHARACTERS_MIN).sort((a, b) => b.length - a.length)
  return ordered.reduce((cleaned, form) => cleaned.replaceAll(form, STRIPPED), text)
}

function formsOf(value: string): string[] {
  const parts = [value, value.trim(), ...value.split(/\r?\n/).map((line) => line.trim())]
  return parts.flatMap((part) => [
    part,
    JSON.stringify(part).slice(1, -1),
    encodeURIComponent(Buffer.from(part).toString()),
    Buffer.from(part).toString('base64'),
    Buffer.from(part).toString('base64').replace(/=+$/, ''),
  ])
}
