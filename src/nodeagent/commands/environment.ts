// Computes the environment and the command of a container. Expands $(NAME) as Kubernetes does: references to unknown names
// stay as they are, and $$ is an escaped dollar sign. Throws a ConfigError for a missing object or key that is not optional, and for a
// source that is not supported.
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'
import { formatPodField, formatResourceField, type NodeResources } from '../pods/downward-fields.ts'
import type { Entries, EntryReader } from '../pods/read-entries.ts'

export type Environment = Readonly<Record<string, string>>

export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

export interface EnvironmentDeps {
  readonly entries: EntryReader
  readonly resources: NodeResources
  /** The variables of every container. The container can override them. */
  readonly base: Environment
  /** Address of the pod, before its status contains one. */
  readonly address?: string
}

export async function readEnvironment(
  pod: Readonly<Pod>,
  container: Readonly<Container>,
  { entries, resources, base, address }: EnvironmentDeps,
): Promise<Environment> {
  const env: Record<string, string> = { ...base }
  const { namespace = '' } = pod.metadata
  const readObject = async (
    kind: 'configMap' | 'secret',
    { name = '', optional = false }: { name?: string; optional?: boolean },
  ) => {
    const object = await entries[kind](namespace, name)
    if (!object && !optional) throw new ConfigError(`${kind.toLowerCase()} ${JSON.stringify(name)} not found`)
    return object
  }
  for (const { prefix = '', configMapRef, secretRef } of container.envFrom ?? []) {
    const object = configMapRef
      ? await readObject('configMap', configMapRef)
      : secretRef && (await readObject('secret', secretRef))
    for (const [key, value] of Object.entries(object ?? {})) {
      if (!key.includes('=')) env[`${prefix}${key}`] = textOf(value)
    }
  }
  const addEntry = (
    name: string,
    entriesOfObject: Entries | undefined,
    { key, optional = false, object }: { key: string; optional?: boolean; object: string },
  ) => {
    const value = entriesOfObject?.[key]
    if (value !== undefined) env[name] = textOf(value)
    else if (!optional) throw new ConfigError(`couldn't find key ${key} in ${object}`)
  }
  for (const { name, value, valueFrom } of container.env ?? []) {
    const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef } = valueFrom ?? {}
    if (!valueFrom) env[name] = expandVariables(value ?? '', env)
    else if (fieldRef) env[name] = readField(pod, fieldRef.fieldPath, address)
    else if (resourceFieldRef) env[name] = readResource(pod, resourceFieldRef, container, resources)
    else if (configMapKeyRef) {
      const object = `ConfigMap ${namespace}/${configMapKeyRef.name}`
      addEntry(name, await readObject('configMap', configMapKeyRef), { ...configMapKeyRef, object })
    } else if (secretKeyRef) {
      const object = `Secret ${namespace}/${secretKeyRef.name}`
      addEntry(name, await readObject('secret', secretKeyRef), { ...secretKeyRef, object })
    } else throw new ConfigError(`env ${name}: ${Object.keys(valueFrom).join()} is not supported by this node agent`)
  }
  return env
}

const textOf = (value: Uint8Array | string): string => Buffer.from(value).toString('utf8')

function readField(pod: Readonly<Pod>, path: string, address = ''): string {
  const hostIPs = [{ ip: address }]
  const { status } = pod
  const knownStatus = { hostIP: address, hostIPs, podIP: address, podIPs: hostIPs, ...status }
  return withConfigError(() => formatPodField({ ...pod, status: knownStatus }, path))
}

const readResource = (
  pod: Readonly<Pod>,
  reference: Parameters<typeof formatResourceField>[1],
  container: Readonly<Container>,
  resources: NodeResources,
) =>
  withConfigError(() =>
    formatResourceField(pod, { ...reference, containerName: reference.containerName || container.name }, resources),
  )

function withConfigError(format: () => string): string {
  try {
    return format()
  } catch (error) {
    throw new ConfigError((error as Error).message)
  }
}

/** Returns the command with its arguments; `entry` is the command of the image, for a container without one. */
export function buildCommand(
  { command = [], args = [] }: Readonly<Container>,
  env: Environment,
  entry?: { readonly command: readonly string[]; readonly args: readonly string[] },
): string[] {
  const expand = (argument: string) => expandVariables(argument, env)
  if (command.length > 0 || !entry) return [...command, ...args].map(expand)
  return [...entry.command, ...(args.length > 0 ? args.map(expand) : entry.args)]
}

export const expandVariables = (text: string, env: Environment): string =>
  text.replace(/\$\$|\$\(([^()]*)\)/g, (whole, name?: string) => {
    if (name === undefined) return '$'
    return Object.hasOwn(env, name) ? env[name]! : whole
  })
