// The exit codes of the commands, which --help and docs/reference/exit-codes.md list.

export type ExitCodes = Readonly<Record<number, string>>

/** The codes of commands without an entry in CODES. */
const DEFAULT_CODES: ExitCodes = { 0: 'success', 1: 'failure', 2: 'usage error' }
/** The codes of commands that run until they are stopped. */
const PROCESS_CODES: ExitCodes = { 0: 'stopped by a signal', 1: 'failure', 2: 'usage error' }
/** The codes of commands that can be interrupted while they change many objects. */
const bulkCodes = (success: string, failure: string): ExitCodes => ({
  0: success,
  1: failure,
  2: 'usage error',
  130: 'interrupted; the same command continues',
})

/** The exit codes by the command's name after `stowage`. */
const CODES: Readonly<Record<string, ExitCodes>> = {
  up: PROCESS_CODES,
  server: PROCESS_CODES,
  console: PROCESS_CODES,
  driver: PROCESS_CODES,
  sidecar: PROCESS_CODES,
  provisioner: PROCESS_CODES,
  resizer: PROCESS_CODES,
  node: PROCESS_CODES,
  'node list': { 0: 'the nodes are listed', 1: 'the nodes cannot be read', 2: 'usage error' },
  'node drain': {
    0: 'the pods have left and their volumes are detached',
    1: 'a pod stays or has not left in time',
    2: 'usage error',
    130: 'interrupted; the same command continues',
  },
  'node fence': { 0: 'the node is out of service', 1: 'failure', 2: 'usage error, or the machine may be on' },
  'node unfence': {
    0: 'the node is in service',
    1: 'failure',
    2: 'usage error, or the node is not ready, or still uses volumes of removed pods',
  },
  'node forget': {
    0: 'the node is removed',
    1: 'failure, or a driver has not detached a volume in time',
    2: 'usage error, or the machine may be on',
  },
  controllers: PROCESS_CODES,
  scheduler: PROCESS_CODES,
  'capacity-cleanup': PROCESS_CODES,
  status: {
    0: 'the server runs and is healthy',
    1: 'the server does not run, or is not healthy',
    2: 'usage error, or the status cannot be read',
  },
  why: { 0: 'the object is ready', 1: 'the object is not ready', 2: 'usage error, or the object cannot be read' },
  simulate: { 0: 'everything fits', 1: 'something does not fit', 2: 'usage error, or the simulation could not run' },
  timeline: {
    0: 'the timeline is printed',
    1: 'there is no timeline, for example because the object is not known',
    2: 'usage error',
  },
  doctor: {
    0: 'no warnings and no errors',
    1: 'at least one warning or error',
    2: 'usage error, or the checks could not run',
  },
  verify: {
    0: 'the driver violates no rule',
    1: 'the driver violates at least one rule',
    2: 'usage error, or the driver could not be verified',
    130: 'interrupted',
  },
  df: {
    0: 'the table is printed, even if some amounts are unknown',
    1: 'claims cannot be read',
    2: 'usage error',
    130: 'interrupted',
  },
  unused: {
    0: 'the list is printed, even if it is empty',
    1: 'claims cannot be read',
    2: 'usage error',
    130: 'interrupted',
  },
  leaks: {
    0: 'there are no leaks, or all were adopted or deleted',
    1: 'there are leaks, or the drivers or PVs cannot be read',
    2: 'usage error, or no driver responds',
    130: 'interrupted',
  },
  grow: bulkCodes('all claims have the requested size', 'some claims do not have it'),
  migrate: bulkCodes('all claims have moved', 'some claims have not moved'),
  retry: {
    0: 'the retry is requested',
    1: 'the retry is not requested, for example because the object does not exist',
    2: 'usage error',
  },
  backup: { 0: 'the backup is complete', 1: 'failure, or the backup has damaged records', 2: 'usage error' },
  'backup verify': {
    0: 'the archives are intact',
    1: 'an archive is damaged or incomplete, has damaged records, or lacks records',
    2: 'usage error',
  },
  restore: { 0: 'the backup is restored', 1: 'failure, or the backup has damaged records', 2: 'usage error' },
  'store check': { 0: 'no damage', 1: 'the store is damaged', 2: 'usage error, or the store cannot be read' },
  'store repair': {
    0: 'the store is intact or repaired',
    1: 'failure, or there is a repair to confirm with --yes',
    2: 'usage error',
  },
}

/** Returns the exit codes of a command by its name after `stowage`. */
export const exitCodesOf = (name: string): ExitCodes => CODES[name] ?? DEFAULT_CODES

/** Formats the exit codes for the help of a command. */
export const formatExitCodes = (codes: ExitCodes): string =>
  `\nExit codes:\n${Object.entries(codes)
    .map(([code, meaning]) => `  ${code.padEnd(3)}  ${meaning}\n`)
    .join('')}`
