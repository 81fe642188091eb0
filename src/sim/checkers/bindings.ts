// Rule `double binding`, checked at every commit: no volume is bound to two claims, no claim becomes Bound to a volume that
// is not its own, and no volume passes from an existing claim to another without having been free in between.
import { keyOfObject } from '../../client/index.ts'
import type { ObjectOf } from '../engine/view.ts'

type Claim = ObjectOf<'claim'>
type Volume = ObjectOf<'volume'>

/** The claims and volumes of a store, with their changes commit by commit. */
export interface ClaimsAndVolumes {
  /** By `namespace/name`. */
  readonly claims: ReadonlyMap<string, Claim>
  readonly volumes: ReadonlyMap<string, Volume>
  /** `namespace/name` by uid, including deleted claims. */
  readonly claimNames: ReadonlyMap<string, string>
  /** Calls `check` after each commit that changed a claim or volume. */
  onCommit(check: (changes: readonly ClaimOrVolumeChange[]) => void): void
}

export interface ClaimOrVolumeChange {
  readonly of: 'claim' | 'volume'
  readonly old: Claim | Volume | undefined
  readonly next: Claim | Volume | undefined
}

export function checkBindings(view: ClaimsAndVolumes, report: (text: string) => void): void {
  view.onCommit((changes) => {
    for (const { of, old, next } of changes) {
      if (of === 'claim' && next) checkClaim(next as Claim, old as Claim | undefined)
      if (of === 'volume') checkVolume(old as Volume | undefined, next as Volume | undefined)
    }
  })

  function checkClaim(claim: Claim, old: Claim | undefined): void {
    const volumeName = claim.spec?.volumeName ?? ''
    if (!isBound(claim) || (old && isBound(old))) return
    const key = keyOfObject(claim)
    for (const other of view.claims.values()) {
      if (other !== claim && isBound(other) && other.spec?.volumeName === volumeName) {
        report(`volume ${volumeName} is bound to the claims ${keyOfObject(other)} and ${key}`)
      }
    }
    const volume = view.volumes.get(volumeName)
    if (!volume) report(`claim ${key} became bound to volume ${volumeName}, which does not exist`)
    else if (volume.spec?.claimRef?.uid !== claim.metadata.uid) {
      report(`claim ${key} became bound to volume ${volumeName}, which belongs to ${describeOwner(volume)}`)
    }
  }

  function checkVolume(old: Volume | undefined, next: Volume | undefined): void {
    const previousRef = old?.spec?.claimRef
    if (!old || !previousRef) return
    const newRef = next?.spec?.claimRef
    const name = old.metadata.name ?? ''
    if (previousRef.uid === undefined) {
      // Reserved by name, for a claim that may not exist yet.
      if (next && newRef && keyOf(newRef) !== keyOf(previousRef))
        report(`volume ${name} was reserved for ${describeOwner(old)}, but was given to ${describeOwner(next)}`)
      return
    }
    if (previousRef.uid === newRef?.uid) return
    const claim = view.claims.get(view.claimNames.get(previousRef.uid) ?? '')
    if (claim?.metadata.uid !== previousRef.uid) return
    if (isBound(claim) && claim.spec?.volumeName === name) {
      report(
        `volume ${name} was ${next ? 'taken from' : 'deleted while it belonged to'} the claim ${keyOfObject(claim)}`,
      )
    } else if (next && newRef?.uid) {
      // The volume's half of the binding is written: claimRef must be cleared before another claim can get the volume.
      report(`volume ${name} was assigned to the claim ${keyOfObject(claim)}, but was given to ${describeOwner(next)}`)
    }
  }
}

export const isBound = ({ status }: Claim): boolean => status?.phase === 'Bound'

const describeOwner = ({ spec }: Volume): string =>
  spec?.claimRef ? `${spec.claimRef.namespace}/${spec.claimRef.name} (${spec.claimRef.uid ?? 'no uid'})` : 'no claim'

const keyOf = ({ namespace, name }: { readonly namespace?: string; readonly name?: string }): string =>
  `${namespace}/${name}`
