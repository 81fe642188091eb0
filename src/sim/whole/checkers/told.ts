// Everything that was ever told about an object in events. The server forgets them after an hour, and what was said then
// was said all the same.
import type { View } from '../view.ts'

export interface Told {
  /** `Warning ProvisioningFailed: …`, each once. */
  about(uid: string | undefined): readonly string[]
}

export function followTold(view: View): Told {
  const told = new Map<string, Set<string>>()
  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of !== 'event' || !change.next) continue
      const { involvedObject, type, reason, message } = change.next
      const uid = involvedObject?.uid ?? ''
      told.set(uid, (told.get(uid) ?? new Set()).add(`${type} ${reason}: ${message}`))
    }
  })
  return { about: (uid) => [...(told.get(uid ?? '') ?? [])] }
}
