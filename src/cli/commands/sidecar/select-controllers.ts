// Selects the controllers of `stowage sidecar`: those of --controllers whose capabilities the driver has. The attacher needs none.
import { canExpand } from '../../../controllers/expanding/index.ts'
import { canMonitorHealth } from '../../../controllers/volume-health/index.ts'
import type { DriverFacts } from '../../../csi/index.ts'
import type { ControllerSelection, SidecarController } from './parse-controllers.ts'

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
