// The schemas of the review kinds of authorization.k8s.io. The API server computes the result; reviews are not stored.
import { boolean, list, map, object, opt, ptr, req, string } from '../../schema.ts'
import { labelSelectorRequirement, objectMeta } from '../shared/meta-schema.ts'

const fieldSelectorRequirement = object(
  'io.k8s.apimachinery.pkg.apis.meta.v1.FieldSelectorRequirement',
  'A requirement on a field.',
  {
    key: req(1, string, 'Path of the field.'),
    operator: req(2, string, 'In, NotIn, Exists or DoesNotExist.'),
    values: opt(3, list(string), 'Values that the operator compares with.'),
  },
)

const fieldSelectorAttributes = object(
  'io.k8s.api.authorization.v1.FieldSelectorAttributes',
  'Field selector of the request.',
  {
    rawSelector: opt(1, string, 'The selector in the form of a query parameter.'),
    requirements: opt(2, list(fieldSelectorRequirement), 'The selector as a list of requirements.'),
  },
)

const labelSelectorAttributes = object(
  'io.k8s.api.authorization.v1.LabelSelectorAttributes',
  'Label selector of the request.',
  {
    rawSelector: opt(1, string, 'The selector in the form of a query parameter.'),
    requirements: opt(2, list(labelSelectorRequirement), 'The selector as a list of requirements.'),
  },
)

const resourceAttributes = object('io.k8s.api.authorization.v1.ResourceAttributes', 'A request for a resource.', {
  namespace: opt(1, string, 'Namespace; empty for all namespaces or for cluster scope.'),
  verb: opt(2, string, 'Verb: get, list, watch, create, update, patch, delete, …'),
  group: opt(3, string, 'API group; empty for the core group.'),
  version: opt(4, string, 'API version.'),
  resource: opt(5, string, 'Plural name of the resource.'),
  subresource: opt(6, string, 'Subresource, such as status.'),
  name: opt(7, string, 'Name of the object; empty for all.'),
  fieldSelector: ptr(8, fieldSelectorAttributes, 'Field selector of the request.'),
  labelSelector: ptr(9, labelSelectorAttributes, 'Label selector of the request.'),
})

const nonResourceAttributes = object(
  'io.k8s.api.authorization.v1.NonResourceAttributes',
  'A request for a non-resource path.',
  {
    path: opt(1, string, 'The path.'),
    verb: opt(2, string, 'The HTTP method in lower case.'),
  },
)

const subjectAccessReviewSpec = object(
  'io.k8s.api.authorization.v1.SubjectAccessReviewSpec',
  'User and request to check; exactly one kind of attributes must be set.',
  {
    resourceAttributes: ptr(1, resourceAttributes, 'Attributes of a request for a resource.'),
    nonResourceAttributes: ptr(2, nonResourceAttributes, 'Attributes of a request for a non-resource path.'),
    user: opt(3, string, 'Name of the user.'),
    groups: opt(4, list(string), 'Groups of the user.'),
    extra: opt(5, map(list(string)), 'Further attributes of the user, by name.'),
    uid: opt(6, string, 'UID of the user, which does not change with the name.'),
  },
)

const subjectAccessReviewStatus = object(
  'io.k8s.api.authorization.v1.SubjectAccessReviewStatus',
  'Whether the request is allowed.',
  {
    allowed: req(1, boolean, 'Whether the request is allowed.'),
    denied: opt(4, boolean, 'Whether the request is denied, regardless of other authorizers.'),
    reason: opt(2, string, 'Reason for the decision.'),
    evaluationError: opt(3, string, 'Error during the evaluation.'),
  },
)

export const subjectAccessReview = object(
  'io.k8s.api.authorization.v1.SubjectAccessReview',
  'Checks whether a user may perform a request.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata; reviews are not stored.'),
    spec: req(2, subjectAccessReviewSpec, 'The request.'),
    status: opt(3, subjectAccessReviewStatus, 'The result, set by the server.'),
  },
)

const selfSubjectAccessReviewSpec = object(
  'io.k8s.api.authorization.v1.SelfSubjectAccessReviewSpec',
  'Request to check for the current user; exactly one kind of attributes must be set.',
  {
    resourceAttributes: ptr(1, resourceAttributes, 'Attributes of a request for a resource.'),
    nonResourceAttributes: ptr(2, nonResourceAttributes, 'Attributes of a request for a non-resource path.'),
  },
)

export const selfSubjectAccessReview = object(
  'io.k8s.api.authorization.v1.SelfSubjectAccessReview',
  'Checks whether the current user may perform a request.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata; reviews are not stored.'),
    spec: req(2, selfSubjectAccessReviewSpec, 'The request.'),
    status: opt(3, subjectAccessReviewStatus, 'The result, set by the server.'),
  },
)

export const localSubjectAccessReview = object(
  'io.k8s.api.authorization.v1.LocalSubjectAccessReview',
  'Checks whether a user may perform a request in one namespace.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata; reviews are not stored.'),
    spec: req(2, subjectAccessReviewSpec, 'The request.'),
    status: opt(3, subjectAccessReviewStatus, 'The result, set by the server.'),
  },
)

const selfSubjectRulesReviewSpec = object(
  'io.k8s.api.authorization.v1.SelfSubjectRulesReviewSpec',
  'Namespace of the rules.',
  {
    namespace: opt(1, string, 'Namespace in which the rules apply; required.'),
  },
)

const resourceRule = object('io.k8s.api.authorization.v1.ResourceRule', 'Allowed verbs on resources.', {
  verbs: req(1, list(string), 'Allowed verbs; * for all.'),
  apiGroups: opt(2, list(string), 'API groups of the rule; * for all.'),
  resources: opt(3, list(string), 'Resources of the rule; * for all.'),
  resourceNames: opt(4, list(string), 'Object names of the rule; empty for all.'),
})

const nonResourceRule = object('io.k8s.api.authorization.v1.NonResourceRule', 'Allowed verbs on non-resource paths.', {
  verbs: req(1, list(string), 'Allowed verbs; * for all.'),
  nonResourceURLs: opt(2, list(string), 'Paths; a trailing * matches any suffix.'),
})

const subjectRulesReviewStatus = object(
  'io.k8s.api.authorization.v1.SubjectRulesReviewStatus',
  'The rules that apply to the user, as far as they can be listed.',
  {
    resourceRules: req(1, list(resourceRule), 'Rules for resources.'),
    nonResourceRules: req(2, list(nonResourceRule), 'Rules for non-resource paths.'),
    incomplete: req(3, boolean, 'Whether further rules may exist.'),
    evaluationError: opt(4, string, 'Error during the evaluation.'),
  },
)

export const selfSubjectRulesReview = object(
  'io.k8s.api.authorization.v1.SelfSubjectRulesReview',
  'Lists the rules that apply to the current user in a namespace.',
  {
    metadata: req(1, objectMeta, 'Standard object metadata; reviews are not stored.'),
    spec: req(2, selfSubjectRulesReviewSpec, 'The request.'),
    status: opt(3, subjectRulesReviewStatus, 'The result, set by the server.'),
  },
)
