// Removes credentials from error messages of a driver, which become events and conditions. redact.ts removes the secret fields
// of CSI messages.

const STRIPPED = '***stripped***'
/** Shorter values, such as "no" or "1", are not removed: they are not secret, and their removal would garble messages. */
const SECRET_CHARACTERS_MIN = 4

/** Replaces each credential in the text, including its encoded forms and its single lines. */
export function redactCredentials(text: string, credentials: Readonly<Record<string, string>>): string {
  const forms = new Set(Object.values(credentials).flatMap(encodingsOf))
  // Longest first, because a value may contain another one.
  const sortedForms = [...forms]
    .filter((form) => form.length >= SECRET_CHARACTERS_MIN)
    .sort((a, b) => b.length - a.length)
  return sortedForms.reduce((redacted, form) => redacted.replaceAll(form, STRIPPED), text)
}

function encodingsOf(value: string): string[] {
  const lines = [value, value.trim(), ...value.split(/\r?\n/).map((line) => line.trim())]
  return lines.flatMap((line) => [
    line,
    JSON.stringify(line).slice(1, -1),
    encodeURIComponent(Buffer.from(line).toString()),
    Buffer.from(line).toString('base64'),
    Buffer.from(line).toString('base64').replace(/=+$/, ''),
  ])
}
