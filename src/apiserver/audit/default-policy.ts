// The audit policy of a server without --audit-policy-file: the metadata of writes and of every access to Secrets. It
// omits reviews, which change nothing, and the writes that components repeat continuously.
import { parseAuditPolicy } from './policy.ts'

export const DEFAULT_AUDIT_POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources:
  - group: ""
    resources: ["secrets", "secrets/*", "serviceaccounts/token"]
- level: None
  verbs: ["update", "patch"]
  resources:
  - group: coordination.k8s.io
    resources: ["leases"]
- level: None
  userGroups: ["system:nodes"]
  verbs: ["update", "patch"]
  resources:
  - group: ""
    resources: ["nodes/status"]
- level: None
  verbs: ["create", "update", "patch"]
  resources:
  - group: ""
    resources: ["events"]
  - group: events.k8s.io
    resources: ["events"]
- level: None
  resources:
  - group: authorization.k8s.io
  - group: authentication.k8s.io
- level: Metadata
  verbs: ["create", "update", "patch", "delete", "deletecollection"]
`

export const defaultAuditPolicy = () => parseAuditPolicy(DEFAULT_AUDIT_POLICY)
