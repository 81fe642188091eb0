// Rule `lost write`: after every start of the server, everything that could be read before exists unchanged or newer, and
// writes acknowledged to users were observed in the store.
import type { Entry } from '../../store/index.ts'
import type { AcknowledgedWrite } from '../engine/users.ts'
import { type KindKey, storeKeyOf } from '../engine/view.ts'
import type { CheckContext } from './context.ts'

export interface LostWrites {
  /** Compares acknowledged writes with the observed contents of the store. */
  check(): void
}

interface ObservedState {
  readonly newestRevision: number
  readonly presentRevisions: ReadonlyMap<string, number>
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

export function checkLostWrites(
  { system, view, report }: CheckContext,
  acknowledgedWrites: readonly AcknowledgedWrite[],
): LostWrites {
  const { cluster } = system
  /** The newest observed revision, and the observed keys that exist with their revisions. */
  let newestRevision = 0
  const presentRevisions = new Map<string, number>()
  let checkedCount = 0

  cluster.follow((store) => {
    const previousState = { newestRevision, presentRevisions: new Map(presentRevisions) } // copied, because the view receives the new state next
    void store.list({ prefix: '' }).then(({ entries, revision }) => compare(previousState, entries, revision))
  })
  view.onWrites((writes) => {
    for (const { key, value, revision } of writes) {
      newestRevision = Math.max(newestRevision, revision)
      if (value === undefined) presentRevisions.delete(key)
      else presentRevisions.set(key, revision)
    }
  })

  function compare(previousState: ObservedState, entries: readonly Entry[], revision: number): void {
    if (revision < previousState.newestRevision) {
      report(
        'lost write',
        `the server restarted at revision ${revision}, but ${previousState.newestRevision} was observed before`,
      )
    }
    const storedRevisions = new Map(entries.map(({ key, modRevision }) => [key, modRevision]))
    // Writes in progress at the crash may have been stored without being observed; each has its own revision.
    let unobservedCount = revision - previousState.newestRevision
    for (const modRevision of storedRevisions.values())
      if (modRevision > previousState.newestRevision) unobservedCount--
    for (const [key, observedRevision] of previousState.presentRevisions) {
      const storedRevision = storedRevisions.get(key)
      if (storedRevision !== undefined && storedRevision < observedRevision)
        report(
          'lost write',
          `${key} is at revision ${storedRevision} after the restart, but ${observedRevision} was observed before`,
        )
      if (storedRevision === undefined && unobservedCount-- <= 0)
        report('lost write', `${key} is missing after the restart`)
    }
    check()
  }

  function check(): void {
    for (; checkedCount < acknowledgedWrites.length; checkedCount++) {
      const { kind, key, resourceVersion } = acknowledgedWrites[checkedCount]!
      const kindKey = KIND_KEYS[kind]
      if (!kindKey || !resourceVersion) continue
      const observedRevision = view.revisionOf(storeKeyOf(kindKey, key))?.revision ?? 0
      if (observedRevision < Number(resourceVersion)) {
        report(
          'lost write',
          `${kind} ${key} was acknowledged at ${resourceVersion}, but only ${observedRevision} was ever observed`,
        )
      }
    }
  }

  return { check }
}
