// Collects all events ever recorded about an object. The server deletes events after an hour, but the checkers still need them.
import type { View } from '../engine/view.ts'

export interface RecordedEvents {
  /** Returns texts such as `Warning ProvisioningFailed: …`, each once, the most recent last. */
  about(uid: string | undefined): readonly string[]
}

export function followEvents(view: View): RecordedEvents {
  const textsByUid = new Map<string, Set<string>>()
  view.onCommit((changes) => {
    for (const change of changes) {
      if (change.of !== 'event' || !change.next) continue
      const { involvedObject, type, reason, message } = change.next
      const uid = involvedObject?.uid ?? ''
      const texts = textsByUid.get(uid) ?? new Set()
      const text = `${type} ${reason}: ${message}`
      texts.delete(text)
      textsByUid.set(uid, texts.add(text))
    }
  })
  return { about: (uid) => [...(textsByUid.get(uid ?? '') ?? [])] }
}
