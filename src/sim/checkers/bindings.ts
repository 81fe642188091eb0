// Judges every commit: no volume is bound to two claims, no claim is called bound to a volume that is not its own, no
// volume is taken away from the claim that is bound to it, and none goes from one claim straight to another.
import { keyOfObject } from '../../client/index.ts'
import type { Claim, StoreView, Volume } from './store-view.ts'

export function checkBindings(view: StoreView, convict: (crime: string) => void): void {
  view.onCommit((changes) => {
    for (const { of, old, next } of changes) {
      if (of === 'claim' && next) judgeClaim(next as Claim, old as Claim | undefined)
      if (of === 'volume') judgeVolume(old as Volume | undefined, next as Volume | undefined)
    }
  })

  function judgeClaim(claim: Claim, old: Claim | undefined): void {
    const volumeName = claim.spec?.volumeName ?? ''
    if (!isBound(claim) || (old && isBound(old))) return
    const key = keyOfObject(claim)
    for (const other of view.claims.values()) {
      if (other !== claim && isBound(other) && other.spec?.volumeName === volumeName) {
        convict(`volume ${volumeName} is bound to the claims ${keyOfObject(other)} and ${key}`)
      }
    }
    const volume = view.volumes.get(volumeName)
    if (!volume) convict(`claim ${key} became bound to volume ${volumeName}, which does not exist`)
    else if (volume.spec?.claimRef?.uid !== claim.metadata.uid) {
      convict(`claim ${key} became bound to volume ${volumeName}, which belongs to ${ownerText(volume)}`)
    }
  }

  function judgeVolume(old: Volume | undefined, next: Volume | undefined): void {
    const before = old?.spec?.claimRef
    if (!old || !before) return
    const after = next?.spec?.claimRef
    const name = old.metadata.name ?? ''
    if (before.uid === undefined) {
      // Reserved by name, for one that may not be there yet.
      if (next && after && keyOf(after) !== keyOf(before))
        convict(`volume ${name} was reserved for ${ownerText(old)}, and is given to ${ownerText(next)}`)
      return
    }
    if (before.uid === after?.uid) return
    const claim = view.claims.get(view.claimNames.get(before.uid) ?? '')
    if (claim?.metadata.uid !== before.uid) return
    if (isBound(claim) && claim.spec?.volumeName === name) {
      convict(`volume ${name} was ${next ? 'taken from' : 'deleted under'} the claim ${keyOfObject(claim)}`)
    } else if (next && after?.uid) {
      // Set aside for it, and not yet its own: whoever wants it otherwise gives it free first, as it is then.
      convict(`volume ${name} was set aside for the claim ${keyOfObject(claim)}, and is given to ${ownerText(next)}`)
    }
  }
}

export const isBound = ({ status }: Claim): boolean => status?.phase === 'Bound'

const ownerText = ({ spec }: Volume): string =>
  spec?.claimRef ? `${spec.claimRef.namespace}/${spec.claimRef.name} (${spec.claimRef.uid ?? 'no uid'})` : 'nobody'

const keyOf = ({ namespace, name }: { readonly namespace?: string; readonly name?: string }): string =>
  `${namespace}/${name}`
