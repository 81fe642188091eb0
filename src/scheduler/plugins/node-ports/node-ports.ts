// Rejects nodes on which another pod uses a host port of this pod. Ports conflict if protocol and number are equal and the
// addresses are equal or one of them is the wildcard address.
import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import type { ObjectKey } from '../../../client/index.ts'
import type { Plugin } from '../../framework/plugin.ts'
import { SKIP, unschedulable } from '../../framework/status.ts'
import { nodeChanged, podRemovedFromNode } from '../shared-hints.ts'

export const PORT_CONFLICT = {
  type: 'PortConflict',
  message: "node(s) didn't have free ports for the requested pod ports",
}

const REJECTION = unschedulable(PORT_CONFLICT)
const ALL_ADDRESSES = '0.0.0.0'

interface HostPort {
  readonly port: number
  readonly protocol: string
  readonly address: string
}

interface State {
  readonly podKey: ObjectKey
  readonly ports: readonly HostPort[]
}

export const nodePorts: Plugin<State> = {
  name: 'NodePorts',
  events: [nodeChanged, podRemovedFromNode],
  preFilter({ key, pod }) {
    const ports = hostPortsOf(pod)
    return ports.length === 0 ? SKIP : { code: 'Success', state: { podKey: key, ports } }
  },
  filter({ podKey, ports }, node) {
    for (const other of node.pods.values()) {
      if (other.key === podKey) continue
      if (hostPortsOf(other.pod).some((usedPort) => ports.some((port) => isConflict(port, usedPort)))) return REJECTION
    }
    return undefined
  },
  signPod: ({ pod }) => hostPortsOf(pod),
}

function hostPortsOf({ spec }: Readonly<Pod>): HostPort[] {
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...(spec?.containers ?? []), ...sidecars].flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort, protocol = 'TCP', hostIP }) =>
      hostPort ? [{ port: hostPort, protocol, address: hostIP || ALL_ADDRESSES }] : [],
    ),
  )
}

const isConflict = (a: HostPort, b: HostPort): boolean =>
  a.port === b.port &&
  a.protocol === b.protocol &&
  (a.address === b.address || a.address === ALL_ADDRESSES || b.address === ALL_ADDRESSES)
