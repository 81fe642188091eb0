// Creates the errors of the driver with their gRPC codes.
import { formatQuantity, quantityFromBytes } from '../api/quantity.ts'
import { CsiError } from '../csi/errors.ts'

export const missingField = (field: string) => new CsiError('INVALID_ARGUMENT', `${field} is required.`)

export const invalid = (message: string) => new CsiError('INVALID_ARGUMENT', message)

export const volumeNotFound = (id: string) =>
  new CsiError('NOT_FOUND', `Volume ${quote(id)} does not exist in this pool. Check the id and the node.`)

export const snapshotNotFound = (id: string) =>
  new CsiError('NOT_FOUND', `Snapshot ${quote(id)} does not exist in this pool.`)

export const notAtPath = (id: string, path: string) =>
  new CsiError('NOT_FOUND', `Volume ${id} is neither staged nor published at ${quote(path)}.`)

export const nameTakenError = (kind: string, name: string, difference: string) =>
  new CsiError(
    'ALREADY_EXISTS',
    `A ${kind} named ${quote(name)} already exists, but ${difference}. Use another name, or delete it with its data first.`,
  )

export const alreadyExists = (message: string) => new CsiError('ALREADY_EXISTS', message)

export const operationInProgress = (id: string) =>
  new CsiError('ABORTED', `Another operation on ${id} is in progress. Retry when it has completed.`)

export const invalidToken = (token: string) =>
  new CsiError('ABORTED', `Starting token ${quote(token)} is not valid. Start again with the first page.`)

export const failedPrecondition = (message: string) => new CsiError('FAILED_PRECONDITION', message)

export const outOfRange = (message: string) => new CsiError('OUT_OF_RANGE', message)

export const insufficientSpace = ({
  requestedBytes,
  availableBytes,
  pool,
}: {
  requestedBytes: number
  availableBytes: number
  pool: string
}) =>
  new CsiError(
    'RESOURCE_EXHAUSTED',
    `${formatSize(requestedBytes)} does not fit into the pool ${pool}: only ${formatSize(Math.max(0, availableBytes))} available. ` +
      'Delete volumes or snapshots, or enlarge the pool.',
  )

export const volumeLimitReached = (id: string, max: number) =>
  new CsiError(
    'RESOURCE_EXHAUSTED',
    `Volume ${id} cannot be staged: this node already has ${max} staged volumes, the maximum of --max-volumes-per-node. ` +
      'Unstage another volume, or restart the driver with a higher limit.',
  )

export const notAccessible = (topology: string) =>
  new CsiError(
    'RESOURCE_EXHAUSTED',
    `The requested topology does not include this node: volumes are created only for ${topology}.`,
  )

/** Returns `300Mi` for 314572800, and `777 bytes` if the size is not a multiple of a larger unit. */
export function formatSize(bytes: number): string {
  const text = formatQuantity(quantityFromBytes(Math.floor(bytes)))
  return /^\d+$/.test(text) ? `${text} bytes` : text
}

/** Capitalizes the text and ends it with a full stop. */
export const asSentence = (text: string): string => withFullStop(text.charAt(0).toUpperCase() + text.slice(1))

/** Ends the text with exactly one full stop. */
export const withFullStop = (text: string): string => `${text.trim().replace(/\.+$/, '')}.`

/** Quotes a value from a request, escaped and truncated. */
export const quote = (text: string): string => {
  const truncated = text.length > QUOTED_LENGTH_MAX ? `${text.slice(0, QUOTED_LENGTH_MAX)}…` : text
  return JSON.stringify(truncated)
}
const QUOTED_LENGTH_MAX = 200
