// Parses the flag --controllers of `stowage sidecar`. It imports no controller, because every command evaluates the flags of all
// commands.
import { UsageError } from '../../../base/usage-error.ts'

const CONTROLLERS = ['provisioner', 'resizer', 'modifier', 'attacher', 'health-monitor'] as const
export type SidecarController = (typeof CONTROLLERS)[number]

export interface ControllerSelection {
  readonly enabledNames: ReadonlySet<SidecarController>
  /** The controllers that --controllers includes by name. The driver must support them. */
  readonly requiredNames: ReadonlySet<SidecarController>
}

/** The controllers of each name. `resizer` includes `modifier`, because external-resizer does the work of both. */
const CONTROLLERS_OF_NAME: Readonly<Record<string, readonly SidecarController[]>> = {
  '*': CONTROLLERS,
  provisioner: ['provisioner'],
  resizer: ['resizer', 'modifier'],
  modifier: ['modifier'],
  attacher: ['attacher'],
  'health-monitor': ['health-monitor'],
}

/**
 * Parses the value of --controllers. `provisioner,attacher` enables these controllers, `*,-attacher` all except the attacher, as
 * in kube-controller-manager. `-attacher` is short for `*,-attacher`.
 */
export function parseControllers(text: string): ControllerSelection {
  const entries = text.split(',').map((entry) => entry.trim())
  const controllersOf = (entry: string): readonly SidecarController[] => {
    const name = entry.replace(/^-/, '')
    if (Object.hasOwn(CONTROLLERS_OF_NAME, name) && entry !== '-*') return CONTROLLERS_OF_NAME[name]!
    throw new UsageError(
      `--controllers: unknown controller ${JSON.stringify(entry)}. Expected ${CONTROLLERS.join(', ')}, or * for all; ` +
        'a minus before a name excludes the controller.',
    )
  }
  const isExcluded = (entry: string) => entry.startsWith('-')
  const excludedNames = new Set(entries.filter(isExcluded).flatMap(controllersOf))
  const includedEntries = entries.every(isExcluded) ? ['*'] : entries.filter((entry) => !isExcluded(entry))
  const enabledNames = new Set(includedEntries.flatMap(controllersOf).filter((name) => !excludedNames.has(name)))
  if (enabledNames.size === 0) throw new UsageError(`--controllers ${JSON.stringify(text)} excludes all controllers.`)
  return {
    enabledNames,
    requiredNames: new Set(includedEntries.filter((entry) => entry !== '*').flatMap(controllersOf)),
  }
}
