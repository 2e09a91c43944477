"""Validates manifests: Kubernetes' kinds by the schemas of kubernetes-validate, custom resources by their definitions."""

import pathlib

import jsonschema
import kubernetes_validate
import yaml


class UniqueKeys(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """YAML in which a key that comes twice is an error, as for Kubernetes' own strict decoding."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len(set(keys)) != len(keys):
            raise yaml.constructor.ConstructorError(None, None, f"a key comes twice among {keys}", node.start_mark)
        return super().construct_mapping(node, deep)


# A plain "=", which YAML 1.1 has a meaning for that nobody uses, is a text in the definitions.
UniqueKeys.add_constructor("tag:yaml.org,2002:value", lambda loader, node: node.value)


def documents_of(text: str) -> list:
    return [document for document in yaml.load_all(text, Loader=UniqueKeys) if document is not None]


def strict(schema: dict) -> dict:
    """A definition's OpenAPI schema as JSON schema. Unknown members, which the API server drops, are errors."""
    schema = dict(schema)
    if schema.pop("nullable", False) and "type" in schema:
        schema["type"] = [schema["type"], "null"]
    if schema.get("x-kubernetes-int-or-string"):
        schema.pop("type", None)
        schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    for key in ("properties", "definitions"):
        if key in schema:
            schema[key] = {name: strict(member) for name, member in schema[key].items()}
    for key in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(key), dict):
            schema[key] = strict(schema[key])
    # Parts of these (allOf, anyOf) name members that the schema around them defines, so they stay open.
    if "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        schema.setdefault("additionalProperties", False)
    return schema


class Schemas:
    def __init__(self, versions: list, folders: list):
        """versions: those of Kubernetes. folders: with CustomResourceDefinitions as .yaml."""
        self._versions = versions
        self._custom = {}
        for folder in folders:
            for path in sorted(pathlib.Path(folder).glob("*.yaml")):
                for document in documents_of(path.read_text()):
                    if document.get("kind") == "CustomResourceDefinition":
                        self._add(document["spec"])

    def _add(self, definition: dict) -> None:
        for version in definition["versions"]:
            schema = strict(version["schema"]["openAPIV3Schema"])
            schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
            self._custom[f"{definition['group']}/{version['name']}", definition["names"]["kind"]] = schema

    def problems(self, manifest: dict) -> list:
        kind = manifest.get("apiVersion"), manifest.get("kind")
        if kind in self._custom:
            validator = jsonschema.Draft202012Validator(self._custom[kind])
            return [sentence("its definition", error) for error in validator.iter_errors(manifest)]
        found = []
        for version in self._versions:
            try:
                kubernetes_validate.validate(manifest, version, strict=True)
            except kubernetes_validate.SchemaNotFoundError:
                found.append(f"Kubernetes {version} has no schema for {kind[1]} of {kind[0]}")
            except kubernetes_validate.ValidationError as error:
                found.append(sentence(f"Kubernetes {version}", error))
        return found


def sentence(where: str, error) -> str:
    return f"{where}: {'.'.join(map(str, error.absolute_path)) or 'the manifest'}: {error.message[:300]}"
