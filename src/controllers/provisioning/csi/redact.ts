// Takes credentials out of what a driver says: a careless one repeats them in its errors, and those become events.
import type { Credentials } from './secrets.ts'

const STRIPPED = '***stripped***'
/** Shorter values are words like "no" or "1": no secret, and removing them would leave no sentence readable. */
const SECRET_CHARACTERS_MIN = 4

/** The text without any value of these, also where a value was encoded or only one of its lines was repeated. */
export function withoutCredentials(text: string, credentials: Credentials): string {
  const forms = new Set(Object.values(credentials).flatMap(formsOf))
  // The longest first: a value may contain another one.
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
