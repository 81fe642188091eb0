// The kinds that `stowage retry` accepts, by the names that its help and completion show, and the parser of its argument. kubectl
// knows all of these names except `va`.
import type { Kind } from '../../../api/kind.ts'
import { volumeAttributesClassKind } from '../../../api/kinds/attributes-class/attributes-class.ts'
import { persistentVolumeClaimKind } from '../../../api/kinds/claim/claim.ts'
import { nodeKind } from '../../../api/kinds/node/node.ts'
import { podKind } from '../../../api/kinds/pod/pod.ts'
import { persistentVolumeKind } from '../../../api/kinds/volume/volume.ts'
import { volumeAttachmentKind } from '../../../api/kinds/volume-attachment/volume-attachment.ts'
import { UsageError } from '../../../base/usage-error.ts'

export const OBJECT_KINDS: Readonly<Record<string, Kind>> = {
  pvc: persistentVolumeClaimKind,
  pv: persistentVolumeKind,
  pod: podKind,
  va: volumeAttachmentKind,
  node: nodeKind,
  vac: volumeAttributesClassKind,
}

export const OBJECT_KIND_NAMES = Object.keys(OBJECT_KINDS)

export interface NamedObject {
  readonly kind: Kind
  readonly name: string
}

/** Parses `KIND/NAME`, where KIND is a short, singular or plural name. */
export function parseObject(text: string): NamedObject {
  const [kindName = '', name = '', ...rest] = text.split('/')
  const kind = findKind(kindName.toLowerCase())
  if (name === '' || rest.length > 0)
    throw new UsageError(`${JSON.stringify(text)}: expected KIND/NAME, such as pvc/orders`)
  if (kind) return { kind, name }
  const known = OBJECT_KIND_NAMES.join(', ')
  throw new UsageError(`${JSON.stringify(text)}: unknown kind ${JSON.stringify(kindName)}. Kinds: ${known}.`)
}

const findKind = (name: string): Kind | undefined =>
  (Object.hasOwn(OBJECT_KINDS, name) ? OBJECT_KINDS[name] : undefined) ??
  Object.values(OBJECT_KINDS).find(
    ({ singular, plural, shortNames = [] }) => name === singular || name === plural || shortNames.includes(name),
  )
