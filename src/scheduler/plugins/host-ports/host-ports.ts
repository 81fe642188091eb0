// Two pods cannot have the same port of a node: same protocol and number, on the same address or on all of them.
import type { Pod } from '../../../api/kinds/pod/pod-schema.ts'
import { INDIFFERENT, type Plugin } from '../../plugin.ts'

export const HOST_PORTS = 'NodePorts'
export const REASON_PORTS = "node(s) didn't have free ports for the requested pod ports"

const REFUSED = [REASON_PORTS]
const EVERY_ADDRESS = '0.0.0.0'

interface HostPort {
  readonly port: number
  readonly protocol: string
  readonly address: string
}

export const hostPorts: Plugin = {
  name: HOST_PORTS,
  prepare({ key, pod }) {
    const wanted = portsOf(pod)
    if (wanted.length === 0) return INDIFFERENT
    return {
      is: 'judge',
      refuses(node) {
        for (const other of node.pods.values()) {
          if (other.key !== key && portsOf(other.pod).some((used) => wanted.some((one) => clash(one, used))))
            return REFUSED
        }
        return undefined
      },
    }
  },
}

function portsOf({ spec }: Readonly<Pod>): HostPort[] {
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...(spec?.containers ?? []), ...sidecars].flatMap(({ ports = [] }) =>
    ports.flatMap(({ hostPort, protocol = 'TCP', hostIP }) =>
      hostPort ? [{ port: hostPort, protocol, address: hostIP || EVERY_ADDRESS }] : [],
    ),
  )
}

const clash = (a: HostPort, b: HostPort): boolean =>
  a.port === b.port &&
  a.protocol === b.protocol &&
  (a.address === b.address || a.address === EVERY_ADDRESS || b.address === EVERY_ADDRESS)
