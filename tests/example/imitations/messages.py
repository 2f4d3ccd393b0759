"""A Messages API whose model knows the phrases of the offline assistant."""

from __future__ import annotations

import json
import re

from example_project.capture.ports.assistant import Text
from example_project.capture.ports.assistant_rules import RuleAssistant
from tests.example.imitations.serving import Imitation

KEY = "the key of the tests"
KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


class Messages(Imitation):
    """Checks a request as the real one does, and answers in the form that it is asked for."""

    def __init__(self):
        super().__init__()
        self.model = RuleAssistant("rules:")
        self.asked = []
        self.odd_answer = None

    def serve(self, request):
        trouble = self.next_trouble("messages")
        if trouble is not None:
            return self._refuse(request, trouble)
        if request.route != "/v1/messages":
            return request.answer(404, b"")
        if request.headers["x-api-key"] != KEY:
            return self._refuse(request, 401)
        body = json.loads(request.body)
        if (
            request.headers["anthropic-version"] != "2023-06-01"
            or not {"model", "max_tokens", "messages"} <= body.keys()
        ):
            return self._refuse(request, 400)
        self.asked.append(body)
        return request.answer(200, self._message(body))

    def _refuse(self, request, status):
        error = {"type": "error", "error": {"type": KINDS[status], "message": "You said: my secret text."}}
        headers = {"Retry_After": "1"} if status == 429 else {}
        request.answer(status, error | {"request_id": "req_1"}, **headers)

    def _message(self, body):
        [said] = body["messages"]
        if "tools" in body:
            assert body["tool_choice"] == {"type": "tool", "name": body["tools"][0]["name"]}
            answer = {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "report",
                "input": self._report(body, said["content"]),
            }
        else:
            answer = {"type": "text", "text": self.model.complete(said["content"])}
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": "Let me see."}, answer] if "tools" in body else [answer],
            "stop_reason": "tool_use" if "tools" in body else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 10},
        }

    def _report(self, body, content):
        if self.odd_answer is not None:
            return self.odd_answer
        lines = [json.loads(line) for line in content.splitlines() if line.startswith("{")]
        texts = [Text(line["message_id"], line["role"], line["content"]) for line in lines]
        if "findings" in body["tools"][0]["input_schema"]["properties"]:
            found = [
                {"message_id": one.message_id, "category": one.category, "snippet": one.snippet, "confidence": 0.9}
                for one in self.model.validate(texts)
            ]
            return {"findings": [*found, {"message_id": "7", "category": "name", "snippet": "nobody", "confidence": 1}]}
        wanted = re.search(r"Categories: (.+)", content)[1].split(", ")
        lessons = self.model.extract(texts, wanted)
        return {
            "lessons": [
                {
                    "category": one.category,
                    "title": one.title,
                    "content": one.content,
                    "confidence": one.confidence,
                    "tags": list(one.tags),
                    "source_message_ids": list(one.source_message_ids),
                }
                for one in lessons
            ]
        }
