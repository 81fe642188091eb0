// Parses the page's requests for grow and migrate like command line flags, with the same checks and defaults, and formats the
// equivalent command.
import { badRequest } from '../../../api/status-error.ts'
import { quoteShellWord } from '../../../base/shell-word.ts'
import type { BulkRequest } from '../../../console/index.ts'
import { readRequest as readGrowRequest, readUndoRequest } from '../grow/command.ts'
import type { GrowRequest } from '../grow/run.ts'
import type { UndoRequest } from '../grow/undo.ts'
import { readRequest as readMigrateRequest } from '../migrate/command.ts'
import type { MigrateRequest } from '../migrate/run.ts'

interface CommandText {
  /** The command as a user would type it. */
  readonly text: string
}

export type BulkCommand =
  | (CommandText & { readonly is: 'grow'; readonly request: GrowRequest & { readonly namespace: string } })
  | (CommandText & { readonly is: 'undo grow'; readonly request: UndoRequest & { readonly namespace: string } })
  | (CommandText & { readonly is: 'migrate'; readonly request: MigrateRequest })

type Flags = Readonly<Record<string, string | number | boolean | undefined>>

const GROW_DEFAULTS = { parallel: '1', interval: '0s', timeout: '10m', maxFailures: '0' }
const MIGRATE_DEFAULTS = { parallel: '50', rate: '5/s', timeout: '10m', maxFailures: '3' }

/** Throws UsageError or ApiError 400 if the request is invalid. */
export function readBulkCommand(request: BulkRequest, { isDryRun }: { readonly isDryRun: boolean }): BulkCommand {
  checkTypes(request)
  const { kind, namespace, selector, ...others } = request
  const { parallel, timeout, maxFailures } = others
  const common = { namespace, selector, parallel, timeout, maxFailures }
  if (request.kind === 'grow') {
    const { names = [], to, by, interval } = request
    if (!namespace) throw badRequest('namespace is missing')
    const flags = { ...common, to, by, interval }
    const parsed = readGrowRequest(names, { ...toText(flags, GROW_DEFAULTS), dryRun: isDryRun, output: 'json' })
    return { is: 'grow', request: { ...parsed, namespace }, text: commandOf(kind, names, flags) }
  }
  if (request.kind === 'migrate') {
    const { from, to, rate } = request
    const flags = { ...common, from, to, rate, allNamespaces: namespace === undefined }
    const text = commandOf(kind, [], flags)
    const parsed = { ...toText(flags, MIGRATE_DEFAULTS), allNamespaces: flags.allNamespaces }
    return { is: 'migrate', request: readMigrateRequest({ ...parsed, dryRun: isDryRun, output: 'json' }), text }
  }
  throw badRequest('kind must be grow or migrate')
}

/** Returns the command that undoes a run. `output` is the report of the run. */
export function undoCommandOf(command: BulkCommand, output: string): BulkCommand {
  if (command.is === 'migrate') {
    const { namespace } = command.request
    const operation: string | undefined = parseReport(output).operation ?? undefined
    if (operation === undefined) throw badRequest('The run has moved no claim: there is nothing to undo.')
    const flags = { undo: true, operation, namespace, allNamespaces: namespace === undefined }
    const parsed = {
      ...toText({ namespace, operation }, MIGRATE_DEFAULTS),
      undo: true,
      allNamespaces: flags.allNamespaces,
    }
    return {
      is: 'migrate',
      request: readMigrateRequest({ ...parsed, output: 'json' }),
      text: commandOf('migrate', [], flags),
    }
  }
  const { namespace, names, selector } = command.request
  const flags = { undo: true, namespace, selector }
  const parsed = readUndoRequest(names, { ...toText({ namespace, selector }, GROW_DEFAULTS), output: 'json' })
  return { is: 'undo grow', request: { ...parsed, namespace }, text: commandOf('grow', names, flags) }
}

function parseReport(output: string): { readonly operation?: string | null } {
  try {
    return JSON.parse(output)
  } catch {
    return {}
  }
}

/** Throws 400 for a value that a flag could not have. */
function checkTypes(request: object): void {
  for (const [name, value] of Object.entries(request)) {
    const isList = name === 'names' && Array.isArray(value) && value.every((item) => typeof item === 'string')
    if (!isList && !['string', 'number', 'undefined'].includes(typeof value)) {
      throw badRequest(`${name} has an unexpected type`)
    }
  }
}

/** Returns flags as text, as on a command line, with the command's defaults. */
function toText<D extends Readonly<Record<string, string>>>(
  flags: Readonly<Record<string, string | number | boolean | undefined>>,
  defaults: D,
): D & Readonly<Record<string, string>> {
  const given = Object.entries(flags).flatMap(([name, value]) =>
    value === undefined || typeof value === 'boolean' ? [] : [[name, String(value)]],
  )
  return { ...defaults, ...Object.fromEntries(given) }
}

function commandOf(kind: string, names: readonly string[], flags: Flags): string {
  const words = Object.entries(flags).flatMap(([name, value]) => {
    if (value === undefined || value === false) return []
    const flag = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
    return value === true ? [flag] : [flag, quoteShellWord(String(value))]
  })
  return ['stowage', kind, ...names.map(quoteShellWord), ...words].join(' ')
}
