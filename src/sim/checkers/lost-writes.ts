// Rule `lost write`: after every start of the server, everything that could be read before exists unchanged or newer, and
// every write acknowledged to a user was seen in the store.
import type { Entry } from '../../store/index.ts'
import type { Acknowledged } from '../engine/users.ts'
import { type KindKey, storeKeyOf } from '../engine/view.ts'
import type { CheckContext } from './context.ts'

export interface LostWrites {
  /** Compares acknowledged writes with the observed contents of the store. */
  check(): void
}

interface ObservedState {
  readonly newest: number
  readonly present: ReadonlyMap<string, number>
}

const KIND_KEYS: Readonly<Record<string, KindKey>> = {
  claim: 'claim',
  pod: 'pod',
  volume: 'volume',
  node: 'node',
  quota: 'quota',
  namespace: 'namespace',
  'storage class': 'class',
  'attributes class': 'attributesClass',
  'limit range': 'limitRange',
}

export function checkWrites({ system, view, report }: CheckContext, acknowledged: readonly Acknowledged[]): LostWrites {
  const { cluster } = system
  /** The newest observed revision, and the observed keys that exist with their revisions. */
  let newest = 0
  const present = new Map<string, number>()
  let checkedCount = 0

  cluster.follow((store) => {
    const previous = { newest, present: new Map(present) } // copied, because the view receives the new state next
    void store.list({ prefix: '' }).then(({ entries, revision }) => compare(previous, entries, revision))
  })
  view.onWrites((writes) => {
    for (const { key, value, revision } of writes) {
      newest = Math.max(newest, revision)
      if (value === undefined) present.delete(key)
      else present.set(key, revision)
    }
  })

  function compare(previous: ObservedState, entries: readonly Entry[], revision: number): void {
    if (revision < previous.newest) {
      report('lost write', `the server restarted at revision ${revision}, and ${previous.newest} was seen`)
    }
    const stored = new Map(entries.map(({ key, modRevision }) => [key, modRevision]))
    // Writes in progress at the crash may have been stored unseen; each has its own revision.
    let unseen = revision - previous.newest
    for (const modRevision of stored.values()) if (modRevision > previous.newest) unseen--
    for (const [key, seenRevision] of previous.present) {
      const storedRevision = stored.get(key)
      if (storedRevision !== undefined && storedRevision < seenRevision)
        report('lost write', `${key} is at revision ${storedRevision} after the restart, and ${seenRevision} was seen`)
      if (storedRevision === undefined && unseen-- <= 0) report('lost write', `${key} is missing after the restart`)
    }
    check()
  }

  function check(): void {
    for (; checkedCount < acknowledged.length; checkedCount++) {
      const { kind, key, resourceVersion } = acknowledged[checkedCount]!
      const kindKey = KIND_KEYS[kind]
      if (!kindKey || !resourceVersion) continue
      const newestSeen = view.revisionOf(storeKeyOf(kindKey, key))?.revision ?? 0
      if (newestSeen < Number(resourceVersion)) {
        report(
          'lost write',
          `${kind} ${key} was acknowledged at ${resourceVersion}, and only ${newestSeen} was ever seen`,
        )
      }
    }
  }

  return { check }
}
