// Everything that was ever told about an object in events. The server forgets them after an hour, and what was said then
// was said all the same.
import type { View } from '../engine/view.ts'

export interface RecordedEvents {
  /** `Warning ProvisioningFailed: …`, each once, the one that was told last at the end. */
  about(uid: string | undefined): readonly string[]
}

export function followEvents(view: View): RecordedEvents {
  const told = new Map<string, Set<string>>()
  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of !== 'event' || !change.next) continue
      const { involvedObject, type, reason, message } = change.next
      const uid = involvedObject?.uid ?? ''
      const texts = told.get(uid) ?? new Set()
      const text = `${type} ${reason}: ${message}`
      texts.delete(text)
      told.set(uid, texts.add(text))
    }
  })
  return { about: (uid) => [...(told.get(uid ?? '') ?? [])] }
}
