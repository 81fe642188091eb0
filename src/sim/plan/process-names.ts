// The names of the processes that a plan may refer to.

import { DRIVERS, type DriverName, NODES } from './catalog.ts'
import type { Setup } from './plan.ts'

export const nodesOf = ({ nodes }: Setup): string[] => NODES.slice(0, nodes)

export const agentOf = (node: string): string => `agent-${node}`
export const driverProcess = (driver: DriverName): string => `driver ${driver}`

/** A provisioner of net.sim without leader election. */
export const SECOND_PROVISIONER = 'second-provisioner'

/** The sidecars of each driver, according to its capabilities. */
const SIDECARS: Readonly<Record<DriverName, readonly string[]>> = {
  'local.sim': ['provisioner', 'resizer'],
  'net.sim': ['provisioner', 'resizer', 'attacher'],
  'basic.sim': ['provisioner'],
}

/** Returns the names of all controller processes, including those without leader election. */
export function controlProcesses(setup: Setup): string[] {
  const { controlReplicas, driverControllers, secondBinder, secondProvisioner } = setup
  const replicas = Array.from({ length: controlReplicas }, (_, index) => index + 1)
  const sidecars = DRIVERS.flatMap((driver) => SIDECARS[driver].map((role) => `${role}-${driver}`))
  const roles = ['control', ...(driverControllers === 'sidecars' ? sidecars : [])]
  const names = roles.flatMap((role) => replicas.map((replica) => `${role}-${replica}`))
  return [
    ...names,
    ...(secondBinder ? ['second-binder'] : []),
    ...(secondProvisioner && driverControllers === 'sidecars' ? [SECOND_PROVISIONER] : []),
  ]
}

export const processesOf = (setup: Setup): string[] => [
  'server',
  ...controlProcesses(setup),
  ...nodesOf(setup).map(agentOf),
  ...DRIVERS.map(driverProcess),
]

/** Returns the processes that send requests to the server. */
export const clientsOf = (setup: Setup): string[] =>
  processesOf(setup).filter((name) => name !== 'server' && !name.startsWith('driver '))

/** Returns the processes that have a role for a driver: its sidecars, or else the control processes. */
export function workersOf(setup: Setup, role: string, driver?: DriverName): string[] {
  const replicas = Array.from({ length: setup.controlReplicas }, (_, index) => index + 1)
  const isSidecar = setup.driverControllers === 'sidecars' && driver !== undefined && SIDECARS[driver].includes(role)
  return replicas.map((replica) => (isSidecar ? `${role}-${driver}-${replica}` : `control-${replica}`))
}
