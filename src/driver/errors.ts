// Every refusal of the driver, in one place: the code the protocol demands, and a message a person can act on.
import { formatQuantity, quantityFromBytes } from '../api/quantity.ts'
import { CsiError } from '../csi/errors.ts'

export const missing = (field: string) => new CsiError('INVALID_ARGUMENT', `${field} is missing from the request.`)

export const invalid = (message: string) => new CsiError('INVALID_ARGUMENT', message)

export const noVolume = (id: string) =>
  new CsiError('NOT_FOUND', `There is no volume ${quote(id)} in this pool. Check the id, or the node it was made on.`)

export const noSnapshot = (id: string) => new CsiError('NOT_FOUND', `There is no snapshot ${quote(id)} in this pool.`)

export const notAtPath = (id: string, path: string) =>
  new CsiError('NOT_FOUND', `Volume ${id} is neither staged nor published at ${quote(path)}.`)

export const nameTaken = (what: string, name: string, difference: string) =>
  new CsiError(
    'ALREADY_EXISTS',
    `A ${what} named ${quote(name)} exists already, but ${difference}. Use another name, or delete the other one first.`,
  )

export const alreadyThere = (message: string) => new CsiError('ALREADY_EXISTS', message)

export const busy = (what: string) =>
  new CsiError('ABORTED', `Another operation on ${what} is still running. Ask again when it has ended.`)

export const badToken = (token: string) =>
  new CsiError('ABORTED', `Starting token ${quote(token)} is not one of ours. Begin again with the first page.`)

export const notNow = (message: string) => new CsiError('FAILED_PRECONDITION', message)

export const outOfRange = (message: string) => new CsiError('OUT_OF_RANGE', message)

export const noRoom = ({
  wantedBytes,
  availableBytes,
  pool,
}: {
  wantedBytes: number
  availableBytes: number
  pool: string
}) =>
  new CsiError(
    'RESOURCE_EXHAUSTED',
    `${sizeText(wantedBytes)} do not fit into the pool ${pool}: ${sizeText(Math.max(0, availableBytes))} are available. ` +
      'Delete volumes or snapshots, or enlarge the pool.',
  )

export const otherPlace = (here: string) =>
  new CsiError('RESOURCE_EXHAUSTED', `The volume may not be here: this driver makes volumes for ${here} only.`)

export const failed = (what: string, cause: unknown) =>
  new CsiError('INTERNAL', `${what}: ${cause instanceof Error ? cause.message : String(cause)}`)

/** `300Mi` for 314572800, `777 bytes` for what is no whole number of anything larger. */
export function sizeText(bytes: number): string {
  const text = formatQuantity(quantityFromBytes(Math.floor(bytes)))
  return /^\d+$/.test(text) ? `${text} bytes` : text
}

/** A reason as a sentence of its own, however it was written. */
export const sentence = (text: string): string => stopped(text.charAt(0).toUpperCase() + text.slice(1))

/** The end of a sentence, with exactly one full stop. */
export const stopped = (text: string): string => `${text.trim().replace(/\.+$/, '')}.`

/** What a caller sent, shown without letting it break the line it stands in, or fill the log. */
export const quote = (text: string): string => {
  const shown = text.length > QUOTED_LENGTH_MAX ? `${text.slice(0, QUOTED_LENGTH_MAX)}…` : text
  return JSON.stringify(shown)
}
const QUOTED_LENGTH_MAX = 200
