// The actions on a claim: why one is not possible now, the request that it sends, and the equivalent kubectl command. The checks
// here only explain a rejection early; the server decides.
import type { ClaimRow } from '../rows/claim.ts'
import type { AttributesClassRow, ClassRow } from '../rows/storage.ts'
import { isGrowing } from './claim-status.ts'

export const CLAIM_ACTIONS = ['expand', 'attributes', 'cancel', 'retry', 'delete'] as const
export type ClaimActionName = (typeof CLAIM_ACTIONS)[number]

export const ACTION_LABELS: Readonly<Record<ClaimActionName, string>> = {
  expand: 'Expand…',
  attributes: 'Change attributes…',
  cancel: 'Cancel expansion…',
  retry: 'Retry now',
  delete: 'Delete…',
}

interface ActionContext {
  readonly claim: ClaimRow
  /** Undefined if the class does not exist or could not be read. */
  readonly storageClass: ClassRow | undefined
  /** The attributes classes of the volume's driver. */
  readonly attributesClasses: readonly AttributesClassRow[]
  /** Undefined until the server has responded. */
  readonly mayPatch: boolean | undefined
  readonly mayDelete: boolean | undefined
  /** Whether there is no cause or unfinished operation that a retry could resolve. */
  readonly isReady: boolean
}

/** Returns why the action is not possible now, or undefined if it is. */
export function explainRefusal(action: ClaimActionName, context: ActionContext): string | undefined {
  const { claim, mayPatch, mayDelete } = context
  const isAllowed = action === 'delete' ? mayDelete : mayPatch
  if (isAllowed === undefined) return 'Your permissions are being checked.'
  const verb = action === 'delete' ? 'delete' : 'patch'
  if (!isAllowed) return `You need permission to ${verb} persistentvolumeclaims in namespace ${claim.namespace}.`
  if (claim.deletedMs !== undefined) return action === 'retry' ? undefined : 'The claim is being deleted.'
  return REFUSALS[action](context)
}

const REFUSALS: Readonly<Record<ClaimActionName, (context: ActionContext) => string | undefined>> = {
  expand({ claim, storageClass }) {
    if (claim.phase !== 'Bound') return `The claim is ${claim.phase}; only a bound claim can be expanded.`
    if (!claim.className) return 'The claim has no class, and only a class can allow expansion.'
    if (!storageClass) return `The class ${claim.className} does not exist or cannot be read.`
    if (!storageClass.allowsExpansion) return `The class ${storageClass.name} does not allow expansion.`
    return undefined
  },
  attributes({ claim, attributesClasses }) {
    if (claim.phase !== 'Bound') return `The claim is ${claim.phase}; only the attributes of a bound claim can change.`
    const others = attributesClasses.filter(({ name }) => name !== claim.attributesClass)
    return others.length === 0 ? 'The driver of this volume has no other VolumeAttributesClass.' : undefined
  },
  cancel: ({ claim }) =>
    isGrowing(claim) && claim.capacity !== undefined ? undefined : 'The claim has the size that it requests.',
  retry: ({ isReady }) => (isReady ? 'The claim is ready; there is nothing to retry.' : undefined),
  delete: () => undefined,
}

/** A write to the API server, which the page can also send as a dry run. */
interface ClaimWrite {
  readonly method: 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: object
  readonly command: string
}

type ClaimName = Pick<ClaimRow, 'namespace' | 'name'>

const pathOf = ({ namespace, name }: ClaimName): string =>
  `/k8s/api/v1/namespaces/${encodeURIComponent(namespace)}/persistentvolumeclaims/${encodeURIComponent(name)}`

function patchWrite(claim: ClaimName, body: object): ClaimWrite {
  const text = JSON.stringify(body)
  return {
    method: 'PATCH',
    path: pathOf(claim),
    body,
    command: `kubectl patch pvc ${claim.name} -n ${claim.namespace} --type merge -p '${text}'`,
  }
}

export const sizeWrite = (claim: ClaimName, size: string): ClaimWrite =>
  patchWrite(claim, { spec: { resources: { requests: { storage: size } } } })

export const attributesWrite = (claim: ClaimName, name: string): ClaimWrite =>
  patchWrite(claim, { spec: { volumeAttributesClassName: name } })

/** Deletes only the claim that was shown, not a later one with the same name. */
export const deleteWrite = (claim: ClaimName & { readonly uid: string }): ClaimWrite => ({
  method: 'DELETE',
  path: pathOf(claim),
  body: { preconditions: { uid: claim.uid } },
  command: `kubectl delete pvc ${claim.name} -n ${claim.namespace}`,
})
