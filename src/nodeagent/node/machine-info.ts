// Reads the data about this machine that the Node object contains: resources, system and address.
import { arch, cpus, hostname, networkInterfaces, platform, release, totalmem, version } from 'node:os'
import { readTextIfPresent } from '../../base/files.ts'

export interface MachineInfo {
  readonly hostname: string
  readonly address: string
  readonly os: string
  /** The architecture as Go names it, e.g. amd64. */
  readonly arch: string
  readonly cpus: number
  readonly memoryBytes: number
  readonly kernel: string
  readonly system: string
  readonly machineId: string
  readonly bootId: string
}

export async function readMachineInfo(): Promise<MachineInfo> {
  return {
    hostname: hostname(),
    address: findAddress(),
    os: platform(),
    arch: GO_ARCHITECTURES[arch()] ?? arch(),
    cpus: Math.max(1, cpus().length),
    memoryBytes: totalmem(),
    kernel: release(),
    system: version(),
    machineId: (await readTextIfPresent('/etc/machine-id').catch(() => undefined))?.trim() ?? '',
    bootId: (await readTextIfPresent('/proc/sys/kernel/random/boot_id').catch(() => undefined))?.trim() ?? '',
  }
}

const GO_ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', arm64: 'arm64', arm: 'arm' }

function findAddress(): string {
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return addresses.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1'
}
