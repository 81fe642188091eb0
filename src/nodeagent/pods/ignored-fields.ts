// Lists the fields of a pod that have no effect if its commands run as processes of the machine. Pure. An unsupported
// option of a volume mount, probe, hook or environment source is rejected instead when the container is started.
import type { Container } from '../../api/kinds/pod/container-schema.ts'
import type { Pod } from '../../api/kinds/pod/pod-schema.ts'

/** Returns paths such as `spec.containers[main].resources.limits`. */
export function findIgnoredFields({ spec = { containers: [] } }: Readonly<Pod>): string[] {
  const { securityContext = {} } = spec
  const podFields = {
    dnsConfig: spec.dnsConfig,
    hostAliases: spec.hostAliases?.length,
    hostUsers: spec.hostUsers === false,
    hostname: spec.hostname,
    resourceClaims: spec.resourceClaims?.length,
    'resources.limits': spec.resources?.limits,
    runtimeClassName: spec.runtimeClassName,
    shareProcessNamespace: spec.shareProcessNamespace,
    'securityContext.appArmorProfile': securityContext.appArmorProfile,
    'securityContext.seLinuxOptions': securityContext.seLinuxOptions,
    'securityContext.seccompProfile': securityContext.seccompProfile,
    'securityContext.sysctls': securityContext.sysctls?.length,
  }
  const containerLists = ['initContainers', 'containers'] as const
  return [
    ...namesOfSetFields(podFields).map((name) => `spec.${name}`),
    ...containerLists.flatMap((list) =>
      (spec[list] ?? []).flatMap((container) =>
        ignoredFieldsOf(container).map((field) => `spec.${list}[${container.name}].${field}`),
      ),
    ),
  ]
}

function ignoredFieldsOf({ resources, securityContext = {} }: Readonly<Container>): string[] {
  return namesOfSetFields({
    'resources.limits': resources?.limits && Object.keys(resources.limits).length,
    'securityContext.allowPrivilegeEscalation': securityContext.allowPrivilegeEscalation === false,
    'securityContext.appArmorProfile': securityContext.appArmorProfile,
    'securityContext.capabilities': securityContext.capabilities,
    'securityContext.procMount': securityContext.procMount,
    'securityContext.seLinuxOptions': securityContext.seLinuxOptions,
    'securityContext.seccompProfile': securityContext.seccompProfile,
  })
}

const namesOfSetFields = (fields: Readonly<Record<string, unknown>>): string[] =>
  Object.keys(fields).filter((name) => fields[name])
