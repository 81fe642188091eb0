// Pods whose claims pull them apart: one is bound where another does not fit. That is said in so many words. Claims that
// were made for the pod alone can be given back and made anew where everything fits; any others are the user's data.

import { claimClassName } from '../../../api/kinds/shared/class-names.ts'
import type { PersistentVolume } from '../../../api/kinds/volume/volume-schema.ts'
import type { ObjectKey } from '../../../client/index.ts'
import { isReachableFrom } from '../../../volumes/node-affinity.ts'
import type { NodeView } from '../../cluster/node-view.ts'
import { getOrMake } from '../../get-or-make.ts'
import type { Refusals } from '../../plugin.ts'
import { canMake } from './judge-node.ts'
import type { BoundClaim, DelayedClaim, VolumeCaches } from './pod-volumes.ts'
import { REASON_NO_SPACE, REASON_NO_VOLUME } from './reasons.ts'

const PLACES_NAMED_MAX = 3

export function explainTrap(
  bound: readonly BoundClaim[],
  delayed: readonly DelayedClaim[],
  refusals: Refusals,
): string | undefined {
  const held = bound.filter(({ volume }) => volume && isPlaced(volume))
  if (held.length === 0 || delayed.length === 0) return undefined
  const places: NodeView[] = []
  for (const [node, reasons] of refusals) {
    if (!held.every(({ volume }) => volume && isReachableFrom(volume, node))) continue
    if (!reasons.some((reason) => reason === REASON_NO_SPACE || reason === REASON_NO_VOLUME)) return undefined
    places.push(node)
  }
  if (places.length === 0) return undefined
  const where = places.slice(0, PLACES_NAMED_MAX).map(({ name }) => JSON.stringify(name))
  const more = places.length > PLACES_NAMED_MAX ? ` and ${places.length - PLACES_NAMED_MAX} more` : ''
  const [one, many] = [held.length === 1, names(held)]
  return (
    `Claim${one ? '' : 's'} ${many} already ${one ? 'has its volume' : 'have their volumes'} on ${where.join(', ')}${more}, ` +
    `where no volume can be had for ${names(delayed)}: make room there, or delete ${many} to have all made elsewhere.`
  )
}

const names = (claims: readonly { readonly name: string }[]): string =>
  claims.map(({ name }) => JSON.stringify(name)).join(', ')

const isPlaced = ({ spec }: Readonly<PersistentVolume>): boolean => spec?.nodeAffinity?.required !== undefined

/**
 * Ways out, each a set of claims of the pod's own whose volumes tie it to a place, and can be made again somewhere else.
 * Where they are in several places, those in one of them may stay; giving back all of them comes last.
 */
export function waysOut(bound: readonly BoundClaim[], { classes }: VolumeCaches): ObjectKey[][] {
  const places = new Map<string, ObjectKey[]>()
  for (const { isEphemeral, volume, claim, key } of bound) {
    if (!isEphemeral || !volume || !isPlaced(volume)) continue
    const storageClass = classes.get(claimClassName(claim) ?? '')
    if (storageClass?.volumeBindingMode !== 'WaitForFirstConsumer' || !canMake(storageClass.provisioner)) continue
    getOrMake(places, JSON.stringify(volume.spec?.nodeAffinity?.required), () => []).push(key)
  }
  const all = [...places.values()].flat()
  if (places.size < 2) return all.length > 0 ? [all] : []
  return [...[...places.values()].map((staying) => all.filter((key) => !staying.includes(key))), all]
}
