// The served resources: the declared kinds, in the versions that --runtime-config does not disable.
import type { Kind } from '../api/kind.ts'

/** A kind in one group version. */
export interface Resource {
  readonly kind: Kind
  readonly group: string
  readonly version: string
  readonly plural: string
  /** Group and version, such as `v1` or `storage.k8s.io/v1beta1`. */
  readonly apiVersion: string
  /** The kind of the stored objects. Differs from `kind` for events.k8s.io, whose events are stored as core events. */
  readonly storedKind: Kind
}

export interface Resources {
  find(group: string, version: string, plural: string): Resource | undefined
  /** Returns the resource in its preferred version, or undefined if discovery does not list it. */
  findPreferred(group: string, plural: string): Resource | undefined
  /** All resources that discovery lists, in order of declaration. Most foreign kinds are served, but not listed. */
  readonly all: readonly Resource[]
  /** The group versions of `all`: groups in order of declaration, versions in order of preference. */
  readonly groups: readonly { readonly group: string; readonly versions: readonly string[] }[]
}

export function createResources(kinds: readonly Kind[], runtimeConfig: RuntimeConfig = ALL_SERVED): Resources {
  const all: Resource[] = []
  const byPath = new Map<string, Resource>()
  const versionsByGroup = new Map<string, string[]>()
  for (const kind of kinds) {
    for (const version of kind.versions) {
      if (!runtimeConfig.serves(kind.group, version, kind.plural)) continue
      const resource: Resource = {
        kind,
        group: kind.group,
        version,
        plural: kind.plural,
        apiVersion: kind.group ? `${kind.group}/${version}` : version,
        storedKind: kind.viewOf?.kind ?? kind,
      }
      if (kind.isForeign && !kind.isDiscoverable) {
        byPath.set(`${kind.group}/${version}/${kind.plural}`, resource)
        continue
      }
      all.push(resource)
      byPath.set(`${kind.group}/${version}/${kind.plural}`, resource)
      const versions = versionsByGroup.get(kind.group) ?? []
      if (!versions.includes(version)) versions.push(version)
      versionsByGroup.set(kind.group, versions)
    }
  }
  return {
    find: (group, version, plural) => byPath.get(`${group}/${version}/${plural}`),
    findPreferred: (group, plural) => all.find((resource) => resource.group === group && resource.plural === plural),
    all,
    groups: [...versionsByGroup].map(([group, versions]) => ({ group, versions: versions.sort(byPreference) })),
  }
}

/** Sorts v1 before v1beta1, and v1beta1 before v1alpha1. */
const byPreference = (a: string, b: string): number => rank(a) - rank(b)
const rank = (version: string): number => (version.includes('alpha') ? 2 : version.includes('beta') ? 1 : 0)

export interface RuntimeConfig {
  serves(group: string, version: string, plural: string): boolean
}

const ALL_SERVED: RuntimeConfig = { serves: () => true }

/**
 * Parses `storage.k8s.io/v1alpha1=false,storage.k8s.io/v1/volumeattributesclasses=false,v1=true`.
 * The most specific setting applies. `api/all` applies to all groups except the core group.
 */
export function parseRuntimeConfig(config: string, kinds: readonly Kind[]): RuntimeConfig {
  const settings = new Map<string, boolean>()
  for (const setting of config.split(',').map((item) => item.trim())) {
    if (setting === '') continue
    const [key = '', value = 'true'] = setting.split('=').map((item) => item.trim())
    if (!/^(true|false)$/i.test(value)) {
      throw new Error(`--runtime-config: "${setting}" must end in =true or =false`)
    }
    if (!isKnown(key, kinds)) {
      throw new Error(
        `--runtime-config: there is no "${key}"; use GROUP/VERSION or GROUP/VERSION/RESOURCE, ` +
          'such as storage.k8s.io/v1alpha1=false',
      )
    }
    const isEnabled = value.toLowerCase() === 'true'
    if (!isEnabled && REQUIRED_RESOURCES[key])
      throw new Error(`--runtime-config: ${key} cannot be disabled: ${REQUIRED_RESOURCES[key]}`)
    settings.set(key, isEnabled)
  }
  return {
    serves: (group, version, plural) => {
      const groupVersion = group ? `${group}/${version}` : version
      return (
        settings.get(`${groupVersion}/${plural}`) ??
        settings.get(groupVersion) ??
        (group === '' ? undefined : settings.get('api/all')) ??
        true
      )
    },
  }
}

/** The resources that the server requires, with the reason. */
const REQUIRED_RESOURCES: Readonly<Record<string, string>> = {
  v1:
    'it is the only version of namespaces, claims and volumes, which the server and its controllers need. ' +
    'Disable single resources of it instead, such as v1/configmaps=false',
  'v1/namespaces': 'the server creates its own namespaces at every start, and objects are created in them',
}

function isKnown(key: string, kinds: readonly Kind[]): boolean {
  if (key === 'api/all') return true
  return kinds.some((kind) =>
    kind.versions.some((version) => {
      const groupVersion = kind.group ? `${kind.group}/${version}` : version
      return key === groupVersion || key === `${groupVersion}/${kind.plural}`
    }),
  )
}
