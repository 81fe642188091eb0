// Selects the controllers of `stowage sidecar`: those of --controllers whose capabilities the driver has. The attacher needs none.
import { UsageError } from '../../../base/usage-error.ts'
import { canExpand } from '../../../controllers/expanding/index.ts'
import { canMonitorHealth } from '../../../controllers/volume-health/index.ts'
import type { DriverFacts } from '../../../csi/index.ts'

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

/** Returns the enabled controllers that the driver supports. Throws if it does not support a named one, or supports none. */
export function selectControllers(
  { enabledNames, requiredNames }: ControllerSelection,
  facts: DriverFacts,
): ReadonlySet<SidecarController> {
  const selectedNames = new Set<SidecarController>()
  for (const name of enabledNames) {
    const problem = findProblem(name, facts)
    if (problem === undefined) selectedNames.add(name)
    else if (requiredNames.has(name)) throw new Error(`--controllers ${name}: the CSI driver ${facts.name} ${problem}.`)
  }
  if (selectedNames.size > 0) return selectedNames
  throw new Error(`The CSI driver ${facts.name} has no capability that a controller of this sidecar needs.`)
}

/** Returns the reason why the driver does not support the controller, or undefined if it does. */
function findProblem(name: SidecarController, facts: DriverFacts): string | undefined {
  switch (name) {
    case 'provisioner':
      return facts.controller.has('CREATE_DELETE_VOLUME')
        ? undefined
        : 'cannot create volumes: it does not report the controller capability CREATE_DELETE_VOLUME'
    // If the driver has one of the two capabilities, both controllers run. The one that the driver does not support records an
    // event on claims that request an expansion or a modification.
    case 'resizer':
    case 'modifier':
      if (!facts.plugin.has('CONTROLLER_SERVICE')) {
        return 'cannot change volumes: it does not report the plugin capability CONTROLLER_SERVICE'
      }
      return canExpand(facts) || facts.controller.has('MODIFY_VOLUME')
        ? undefined
        : 'cannot change volumes: it reports neither EXPAND_VOLUME nor MODIFY_VOLUME'
    case 'attacher':
      return undefined // without PUBLISH_UNPUBLISH_VOLUME, attachments are marked as attached
    case 'health-monitor':
      return canMonitorHealth(facts)
        ? undefined
        : 'cannot report the health of volumes: it needs VOLUME_CONDITION, and LIST_VOLUMES or GET_VOLUME'
  }
}
